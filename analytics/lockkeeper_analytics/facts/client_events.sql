-- The events of clients, in their place: connections and consumers that came and went. ActiveMQ's
-- journals have none of this.
SELECT directory, CAST(file_id AS BIGINT) * 4294967296 + events.offset AS position,
    events.at, event, connection_id, client_id, user_name, address, consumer_id,
    split_part(events.destination, '://', 1) AS destination_kind,
    regexp_replace(events.destination, '^[a-z-]+://', '') AS destination,
    subscription, delivered, held
FROM events
WHERE event NOT IN ('start', 'takeover', 'stop')
