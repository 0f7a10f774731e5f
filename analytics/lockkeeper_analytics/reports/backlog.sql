-- What a broker would serve after a replay: messages of queues, and of topics once for each
-- subscription that was there before them. What a prepared transaction consumes is in doubt: nobody
-- gets it. A stream keeps what it has for its groups: that waits for nobody, and is left out.
SELECT directory, destination_kind, destination, subscription,
    count_if(NOT hidden) AS waiting,
    coalesce(sum(CASE WHEN NOT hidden THEN message_bytes END), 0) AS bytes,
    count_if(NOT hidden AND dead_letter_cause IS NOT NULL) AS dead_letters,
    count_if(hidden) AS in_doubt,
    min(stored_at) AS oldest_at,
    max(stored_at) AS newest_at
FROM message_lifetimes
WHERE ended IS NULL AND NOT is_of_streams(destination_kind, destination)
GROUP BY directory, destination_kind, destination, subscription
ORDER BY waiting DESC, directory, destination_kind, destination, subscription
