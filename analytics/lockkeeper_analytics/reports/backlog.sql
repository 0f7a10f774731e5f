-- What a broker would serve after a replay: messages of queues, and of topics once for each
-- subscription that was there before them. What a prepared transaction consumes is in doubt: nobody
-- gets it. `dead_letters` are those that lie where they died, and none that somebody sent back.
-- A stream keeps what it has for its groups: that waits for nobody, and is left out.
SELECT lives.directory, lives.destination_kind, lives.destination, subscription,
    count_if(NOT hidden) AS waiting,
    coalesce(sum(CASE WHEN NOT hidden THEN message_bytes END), 0) AS bytes,
    count_if(NOT hidden AND letters.destination IS NOT NULL) AS dead_letters,
    count_if(hidden) AS in_doubt,
    min(stored_at) AS oldest_at,
    max(stored_at) AS newest_at
FROM message_lifetimes lives LEFT JOIN letters
    ON lives.directory = letters.directory AND stored = record_position
WHERE ended IS NULL AND NOT is_of_streams(lives.destination_kind, lives.destination)
GROUP BY lives.directory, lives.destination_kind, lives.destination, subscription
ORDER BY waiting DESC, lives.directory, lives.destination_kind, lives.destination, subscription
