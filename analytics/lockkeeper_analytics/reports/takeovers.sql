-- `silent_ms` is how long the journal had held no later time when a broker started, at most:
-- between the last sign of life of its predecessor and the start. `after_crash` tells that there
-- was a predecessor, and that it did not stop cleanly. Records of the event's own file are compared
-- one by one, other files as a whole.
WITH life AS (
    SELECT broker_events.*, CAST(shiftright(position, 32) AS INT) AS file_id FROM broker_events
),
of_files AS (
    SELECT directory, file_id, max(written_after) AS known_at FROM placed GROUP BY ALL
),
known AS (
    SELECT /*+ BROADCAST(life) */ life.directory, life.position, placed.written_after AS known_at
    FROM placed JOIN life
        ON placed.directory = life.directory AND placed.file_id = life.file_id
        AND placed.position < life.position
        -- A clock line of the event's own batch tells the event's own time.
        AND placed.written_after < life.at
    UNION ALL
    SELECT /*+ BROADCAST(life) */ life.directory, life.position, known_at
    FROM of_files JOIN life
        ON of_files.directory = life.directory AND of_files.file_id < life.file_id
),
last_known AS (
    SELECT directory, position, max(known_at) AS last_known_at FROM known GROUP BY ALL
)
SELECT directory, life.at, event, broker_name AS broker, replica, epoch, cause,
    is_start AND coalesce(
        lag(event) OVER (PARTITION BY directory ORDER BY position) <> 'stop', false) AS after_crash,
    last_known_at,
    CASE WHEN is_start
        THEN unix_millis(greatest(life.at, last_known_at)) - unix_millis(last_known_at) END
        AS silent_ms
FROM life LEFT JOIN last_known USING (directory, position)
ORDER BY directory, position
