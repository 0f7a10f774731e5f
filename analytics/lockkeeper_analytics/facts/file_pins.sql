-- What in a data file keeps it there: live messages by destination (one of a topic counts once),
-- durable subscriptions that were made in it, and transactions without an outcome.
SELECT directory, CAST(shiftright(located, 32) AS INT) AS file_id, 'messages' AS what,
    destination_kind || '://' || destination AS owner,
    count(*) AS messages, sum(record_bytes) AS bytes
FROM (
    SELECT DISTINCT directory, destination_kind, destination, message_id, located, record_bytes
    FROM message_lifetimes WHERE ended IS NULL
) waiting
GROUP BY ALL
UNION ALL
SELECT DISTINCT directory, CAST(shiftright(since, 32) AS INT), 'subscription', subscription, 0, 0
FROM live_subscriptions
UNION ALL
SELECT DISTINCT directory, file_id, 'transaction', transaction, 0, 0
FROM transaction_records WHERE settled IS NULL
