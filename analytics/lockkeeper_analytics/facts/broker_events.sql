-- The events of brokers themselves: that they started, took over or stopped, in their place.
SELECT directory, CAST(file_id AS BIGINT) * 4294967296 + events.offset AS position,
    events.at, event, broker_name, coalesce(replica, broker_name) AS replica, epoch, cause,
    event <> 'stop' AS is_start
FROM events
WHERE event IN ('start', 'takeover', 'stop')
