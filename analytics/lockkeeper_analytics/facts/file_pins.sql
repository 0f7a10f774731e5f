-- What in a data file keeps it there: live messages by destination (one of a topic counts once) or stream,
-- durable subscriptions that were made in it, and transactions without an outcome. A retroactive
-- subscription needs those before it, too: they kept the messages that it found. And that nobody
-- knows what else is in it: what was skipped may be a message that waits.
WITH made AS (
    SELECT directory, subscription, since FROM live_subscriptions
    UNION ALL
    SELECT live.directory, live.subscription, earlier.since
    FROM subscribed live
    JOIN subscribed earlier
        ON live.directory = earlier.directory
        AND live.destination_kind = earlier.destination_kind
        AND live.destination = earlier.destination AND earlier.since < live.since
    LEFT JOIN periods
        ON live.directory = periods.directory
        AND live.destination_kind = periods.destination_kind
        AND live.destination = periods.destination AND purged IS NULL
    WHERE live.retroactive AND live.until IS NULL AND live.destination_kind LIKE '%topic'
        AND earlier.since > coalesce(begins, -1)
)
SELECT directory, CAST(shiftright(located, 32) AS INT) AS file_id, 'messages' AS what,
    CASE WHEN is_of_streams(destination_kind, destination) AND segment_part(destination, 3) <> ''
        THEN 'stream://' || segment_part(destination, 3)
        ELSE destination_kind || '://' || destination END AS owner,
    count(*) AS messages, sum(record_bytes) AS bytes
FROM (
    SELECT DISTINCT directory, destination_kind, destination, message_id, located, record_bytes
    FROM message_lifetimes WHERE ended IS NULL
) waiting
GROUP BY ALL
UNION ALL
SELECT DISTINCT directory, CAST(shiftright(since, 32) AS INT), 'subscription', subscription, 0, 0
FROM made
UNION ALL
SELECT DISTINCT directory, file_id, 'transaction', transaction, 0, 0
FROM transaction_files WHERE settled IS NULL
UNION ALL
SELECT checked_files.directory, checked_files.file_id, 'reason', 'damage in it was skipped', 0, 0
FROM checked_files LEFT JOIN (
    SELECT directory, file_id, sum(record_bytes) AS record_bytes FROM records
    GROUP BY directory, file_id
) seen ON checked_files.directory = seen.directory AND checked_files.file_id = seen.file_id
WHERE is_damaged OR coalesce(record_bytes, 0) < batch_bytes
UNION ALL
SELECT checked_files.directory, checked_files.file_id, 'reason', 'nothing is written behind it', 0, 0
FROM checked_files JOIN data_files
    ON checked_files.directory = data_files.directory
    AND checked_files.file_id = data_files.file_id
WHERE is_open AND NOT is_current
