-- What each connection stored at each destination. Dead letters are no one's sending. `share` is
-- the part of the destination's messages, `per_second` the mean between first and last, over a
-- second at least. Where each message has a connection of its own, there are millions: the busiest
-- 1,000 are told.
WITH sent AS (
    SELECT directory, destination_kind, destination,
        regexp_replace(producer_id, ':-?[0-9]+:-?[0-9]+$', '') AS producer,
        message_bytes, stored_at, transaction
    FROM applied_operations WHERE kind = 'add' AND dead_letter_cause IS NULL
        AND NOT is_of_streams(destination_kind, destination)
),
summed AS (
    SELECT directory, destination_kind, destination, producer,
        count(*) AS messages,
        sum(message_bytes) AS bytes,
        min(stored_at) AS first_at,
        max(stored_at) AS last_at,
        count(transaction) AS transacted
    FROM sent GROUP BY ALL
),
busiest AS (
    SELECT summed.*,
        messages / sum(messages) OVER (PARTITION BY directory, destination_kind, destination)
            AS share
    FROM summed
    ORDER BY messages DESC, directory, destination_kind, destination, producer
    LIMIT 1000
)
SELECT busiest.directory, destination_kind, destination, producer, client_id, user_name, address,
    messages, bytes, first_at, last_at,
    messages / greatest((unix_millis(last_at) - unix_millis(first_at)) / 1000, 1) AS per_second,
    share, transacted
FROM busiest LEFT JOIN connections
    ON busiest.directory = connections.directory AND producer = connection_id
ORDER BY messages DESC, busiest.directory, destination_kind, destination, producer
