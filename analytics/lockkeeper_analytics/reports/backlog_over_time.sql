-- What waited at the end of each cell of time, from the first message on to the last moment that the
-- directory tells of: messages in the journal, for a topic those of each durable subscription.
-- `oldest_ms` is how long the first of them had been there, in the last cell when the journal ended.
-- `depth` is what the last line of statistics in the cell says of a queue: it counts what is never
-- written, too.
WITH stays AS (
    SELECT /*+ BROADCAST(last_cells) */ directory, destination_kind, destination, subscription,
        seconds, last, stored_at,
        div(unix_seconds(coalesce(added_at, stored_at)), seconds) * seconds AS begun,
        coalesce(CASE WHEN ended IS NOT NULL
            THEN div(unix_seconds(coalesce(ended_at, added_at)), seconds) * seconds END,
            last + seconds) AS gone
    FROM message_lifetimes JOIN last_cells USING (directory)
    WHERE NOT is_of_streams(destination_kind, destination)
),
alike AS (
    SELECT directory, destination_kind, destination, subscription, begun, gone, seconds,
        count(*) AS messages, min(stored_at) AS oldest
    FROM stays WHERE begun < gone GROUP BY ALL
),
spans AS (
    SELECT directory, destination_kind, destination, subscription, seconds, last,
        min(begun) AS begun
    FROM stays GROUP BY ALL
),
depths AS (
    SELECT directory, destination_kind, destination, depth, position,
        div(unix_seconds(told.at), seconds) * seconds AS begins
    FROM (SELECT counted.*, (SELECT seconds FROM cells) AS seconds FROM counted) told
    WHERE destination_kind LIKE '%queue'
),
every_cell AS (
    SELECT directory, destination_kind, destination, subscription,
        explode(sequence(begun, gone - seconds, seconds)) AS begins,
        messages, oldest, CAST(NULL AS BIGINT) AS depth
    FROM alike
    UNION ALL
    SELECT directory, destination_kind, destination, subscription,
        explode(sequence(begun, last, seconds)) AS begins, 0, NULL, NULL
    FROM spans WHERE begun <= last
    UNION ALL
    SELECT directory, destination_kind, destination, NULL, begins, NULL, NULL,
        max_by(depth, position) FILTER (WHERE depth IS NOT NULL)
    FROM depths GROUP BY directory, destination_kind, destination, begins
),
summed AS (
    SELECT directory, destination_kind, destination, subscription, begins,
        coalesce(sum(messages), 0) AS waiting, min(oldest) AS oldest, max(depth) AS depth
    FROM every_cell GROUP BY directory, destination_kind, destination, subscription, begins
)
SELECT /*+ BROADCAST(last_cells) */ told.directory, told.destination_kind, told.destination,
    subscription, timestamp_seconds(begins) AS time, seconds, waiting,
    -- What came may be behind the end where somebody has set the clock back.
    greatest(least((begins + seconds) * 1000, unix_millis(end_at)), unix_millis(oldest))
        - unix_millis(oldest) AS oldest_ms,
    depth,
    dead_letter_queues.destination IS NOT NULL AS is_dead_letter_queue
FROM summed told JOIN last_cells ON told.directory = last_cells.directory
LEFT JOIN dead_letter_queues
    ON told.directory = dead_letter_queues.directory
    AND told.destination_kind = dead_letter_queues.destination_kind
    AND told.destination = dead_letter_queues.destination
ORDER BY told.directory, told.destination_kind, told.destination, subscription, time
