-- Messages of queues, and of topics once for each subscription that still waits for them. What a
-- prepared transaction consumes is in doubt: nobody gets it.
WITH held AS (
    SELECT *, outcome = 'in_doubt' AS hidden,
        unnest(if(destination_kind LIKE '%queue', [NULL], waiting_for)) AS subscription
    FROM messages
    WHERE outcome = 'pending' OR (outcome = 'in_doubt' AND end_transaction IS NOT NULL)
)
SELECT directory, destination_kind, destination, subscription,
    count(*) FILTER (NOT hidden) AS waiting,
    coalesce(sum(message_bytes) FILTER (NOT hidden), 0) AS bytes,
    count(*) FILTER (NOT hidden AND dead_letter_cause IS NOT NULL) AS dead_letters,
    count(*) FILTER (hidden) AS in_doubt,
    min(stored_at) AS oldest_at,
    max(stored_at) AS newest_at
FROM held
GROUP BY ALL
ORDER BY waiting DESC, directory, destination_kind, destination, subscription
