-- Records count where they happened. What a line of the statistics counts beyond the records in
-- front of it, because they were never written, is spread evenly over the time it stands for.
WITH moved AS (
    SELECT directory, destination_kind, destination, kind, position,
        shiftright(position, 32) AS file_id,
        timestamp_seconds(div(unix_seconds(happened_at), seconds) * seconds) AS time
    FROM (
        SELECT applied.*, (SELECT seconds FROM cells) AS seconds FROM applied_operations applied
    ) told
    WHERE kind IN ('add', 'remove') AND NOT is_of_streams(destination_kind, destination)
),
died AS (
    SELECT directory, origin_kind, origin,
        timestamp_seconds(div(unix_seconds(happened_at), seconds) * seconds) AS time
    FROM (SELECT deaths.*, (SELECT seconds FROM cells) AS seconds FROM deaths) told
),
-- A record is counted by the next line of the same run, if there is one. Lines of the same file are
-- found by sorting each file, others by the first one of a later file.
marks AS (
    SELECT DISTINCT directory, position, shiftright(position, 32) AS file_id, true AS counts
    FROM counted
    UNION ALL
    SELECT directory, position, shiftright(position, 32), false FROM broker_events WHERE is_start
),
first_marks AS (
    SELECT directory, file_id, min(position) AS mark FROM marks GROUP BY ALL
),
file_marks AS (
    SELECT files.directory, files.file_id,
        min(mark) OVER (
            PARTITION BY files.directory ORDER BY files.file_id DESC
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS later
    FROM (
        SELECT DISTINCT directory, file_id FROM moved
        UNION SELECT directory, file_id FROM first_marks
    ) files
    LEFT JOIN first_marks
        ON files.directory = first_marks.directory AND files.file_id = first_marks.file_id
),
placed AS (
    SELECT directory, file_id, position, kind, destination_kind, destination,
        CAST(NULL AS BIGINT) AS mark
    FROM moved
    UNION ALL
    SELECT directory, file_id, position, NULL, NULL, NULL, position FROM marks
),
followed AS (
    SELECT directory, file_id, kind, destination_kind, destination,
        min(mark) OVER (
            PARTITION BY directory, file_id ORDER BY position DESC
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS next
    FROM placed
),
recorded AS (
    SELECT /*+ BROADCAST(file_marks) */ followed.directory, destination_kind, destination,
        coalesce(next, later) AS position,
        count_if(kind = 'add') AS adds, count_if(kind = 'remove') AS removes
    FROM followed JOIN file_marks
        ON followed.directory = file_marks.directory AND followed.file_id = file_marks.file_id
    WHERE kind IS NOT NULL
    GROUP BY ALL
),
beyond AS (
    SELECT directory, destination_kind, destination,
        unix_millis(coalesce(previous_at, counted.at)) AS starts, unix_millis(counted.at) AS stops,
        greatest(new_enqueued - coalesce(adds, 0), 0) AS enqueued,
        greatest(new_dequeued - coalesce(removes, 0), 0) AS dequeued,
        new_redelivered AS redelivered, (SELECT seconds FROM cells) AS seconds
    FROM counted LEFT JOIN recorded USING (directory, destination_kind, destination, position)
),
stretches AS (
    SELECT beyond.*,
        explode(sequence(
            div(starts, 1000 * seconds) * seconds, div(stops, 1000 * seconds) * seconds, seconds
        )) AS begins
    FROM beyond WHERE (enqueued > 0 OR dequeued > 0 OR redelivered > 0) AND starts <= stops
),
shares AS (
    SELECT directory, destination_kind, destination, timestamp_seconds(begins) AS time,
        enqueued, dequeued, redelivered,
        CASE WHEN stops > starts
            THEN (least(stops / 1000, begins + seconds) - greatest(starts / 1000, begins))
                / (stops / 1000 - starts / 1000)
            ELSE 1 END AS share
    FROM stretches
),
every_count AS (
    SELECT directory, destination_kind, destination, time,
        count_if(kind = 'add') AS enqueued, count_if(kind = 'remove') AS dequeued,
        0 AS dead_lettered, 0 AS redelivered
    FROM moved GROUP BY directory, destination_kind, destination, time
    UNION ALL
    SELECT directory, origin_kind, origin, time, 0, 0, count(*), 0
    FROM died GROUP BY directory, origin_kind, origin, time
    UNION ALL
    SELECT directory, destination_kind, destination, time,
        enqueued * share, dequeued * share, 0, redelivered * share
    FROM shares
),
summed AS (
    SELECT directory, destination_kind, destination, time,
        CAST(coalesce(sum(enqueued), 0) AS DOUBLE) AS enqueued,
        CAST(coalesce(sum(dequeued), 0) AS DOUBLE) AS dequeued,
        CAST(coalesce(sum(dead_lettered), 0) AS DOUBLE) AS dead_lettered,
        CAST(coalesce(sum(redelivered), 0) AS DOUBLE) AS redelivered,
        seconds
    FROM (SELECT every_count.*, (SELECT seconds FROM cells) AS seconds FROM every_count) told
    WHERE time IS NOT NULL
    GROUP BY directory, destination_kind, destination, time, seconds
)
SELECT summed.*, dead_letter_queues.destination IS NOT NULL AS is_dead_letter_queue
FROM summed LEFT JOIN dead_letter_queues
    ON summed.directory = dead_letter_queues.directory
    AND summed.destination_kind = dead_letter_queues.destination_kind
    AND summed.destination = dead_letter_queues.destination
ORDER BY summed.directory, summed.destination_kind, summed.destination, time
