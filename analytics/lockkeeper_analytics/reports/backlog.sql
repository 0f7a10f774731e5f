-- Messages of queues, and of topics once for each subscription that was there before them. What a
-- prepared transaction consumes is in doubt: nobody gets it.
SELECT directory, destination_kind, destination, subscription,
    count(*) FILTER (NOT hidden) AS waiting,
    coalesce(sum(message_bytes) FILTER (NOT hidden), 0) AS bytes,
    count(*) FILTER (NOT hidden AND dead_letter_cause IS NOT NULL) AS dead_letters,
    count(*) FILTER (hidden) AS in_doubt,
    min(stored_at) AS oldest_at,
    max(stored_at) AS newest_at
FROM lives
WHERE ended IS NULL
GROUP BY ALL
ORDER BY waiting DESC, directory, destination_kind, destination, subscription
