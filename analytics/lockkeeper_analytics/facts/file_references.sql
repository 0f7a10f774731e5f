-- Pairs of data files: records in `file_id` end or move something that lies in `refers`.
WITH purges AS (
    SELECT directory, destination_kind, destination, position AS purge
    FROM effects WHERE kind = 'remove_destination'
),
there AS (
    SELECT directory, destination_kind, destination, position, record_position
    FROM effects WHERE kind IN ('add', 'subscribe')
),
pairs AS (
    SELECT directory, shiftright(ender, 32) AS file_id, shiftright(located, 32) AS refers
    FROM message_lifetimes WHERE end_kind IN ('remove', 'unmatched')
    UNION ALL
    SELECT directory, shiftright(located, 32), shiftright(stored, 32) FROM message_lifetimes
    UNION ALL
    SELECT directory, shiftright(settled, 32), file_id
    FROM transaction_records WHERE settled IS NOT NULL
    UNION ALL
    SELECT directory, shiftright(until.position, 32), shiftright(since, 32)
    FROM subscribed WHERE until IS NOT NULL
    UNION ALL
    SELECT /*+ BROADCAST(purges) */ directory,
        shiftright(purge, 32), shiftright(record_position, 32)
    FROM there JOIN purges USING (directory, destination_kind, destination)
    WHERE position < purge
)
SELECT DISTINCT directory, CAST(file_id AS INT) AS file_id, CAST(refers AS INT) AS refers
FROM pairs WHERE file_id <> refers
