-- `silent_ms` is how long the journal had held no later time when a broker started, at most.
WITH life AS (
    SELECT *, (file_id::BIGINT << 32) + "offset" AS position, event <> 'stop' AS is_start
    FROM events WHERE event IN ('start', 'takeover', 'stop')
),
known AS (
    SELECT life.directory, life.position, max(earlier.written_after) AS last_known_at
    FROM life JOIN records earlier
        ON life.directory = earlier.directory
        AND (earlier.file_id < life.file_id
            -- A clock line of the event's own batch tells the event's own time.
            OR earlier.file_id = life.file_id AND earlier."offset" < life."offset"
                AND earlier.written_after < life."at")
    GROUP BY ALL
)
SELECT directory, "at", event, broker_name AS broker, coalesce(replica, broker_name) AS replica,
    epoch, cause,
    is_start AND coalesce(lag(event) OVER before <> 'stop', false) AS after_crash,
    last_known_at,
    if(is_start, epoch_ms("at") - epoch_ms(last_known_at), NULL) AS silent_ms
FROM life LEFT JOIN known USING (directory, position)
WINDOW before AS (PARTITION BY directory ORDER BY position)
ORDER BY directory, position
