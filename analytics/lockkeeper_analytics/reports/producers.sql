-- Dead letters are no one's sending. Where each message has a connection of its own, there are
-- millions: the busiest 1,000 are told.
WITH known AS (
    SELECT directory, connection_id AS producer, arg_max(
        {'client_id': client_id, 'user_name': user_name, 'address': address},
        (file_id, "offset")) AS told
    FROM events WHERE event = 'connectionOpened' GROUP BY ALL
),
sent AS (
    SELECT directory, destination_kind, destination,
        regexp_replace(producer_id, ':-?[0-9]+:-?[0-9]+$', '') AS producer,
        count(*) AS messages,
        sum(message_bytes) AS bytes,
        min(stored_at) AS first_at,
        max(stored_at) AS last_at,
        count(transaction) AS transacted
    FROM effects WHERE kind = 'add' AND dead_letter_cause IS NULL GROUP BY ALL
)
SELECT directory, destination_kind, destination, producer,
    told.client_id, told.user_name, told.address,
    messages, bytes, first_at, last_at,
    messages / greatest((epoch_ms(last_at) - epoch_ms(first_at)) / 1000, 1) AS per_second,
    messages / sum(messages) OVER (PARTITION BY directory, destination_kind, destination) AS share,
    transacted
FROM sent LEFT JOIN known USING (directory, producer)
ORDER BY messages DESC, directory, destination_kind, destination, producer
LIMIT 1000
