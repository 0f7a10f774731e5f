-- What each group had not consumed of a stream at the end of each cell of time, in all partitions:
-- from the first text that tells of the group on. `oldest_ms` is how long the first message of
-- these had been there, in the last cell when the journal ended; null where no record has it any
-- more.
WITH held AS (
    SELECT directory, consumer_group, stream, partition, next_offset, seconds,
        div(unix_seconds(written_at), seconds) * seconds AS begun,
        CASE WHEN until_at IS NULL THEN last + seconds
            ELSE div(unix_seconds(until_at), seconds) * seconds END AS gone
    FROM group_places JOIN last_cells USING (directory)
),
reading AS (
    SELECT directory, consumer_group, stream, partition, next_offset,
        explode(sequence(begun, gone - seconds, seconds)) AS begins
    FROM held WHERE begun < gone
),
came AS (
    SELECT directory, stream, partition, seconds, last, base, entry, dropped_at, is_there,
        div(unix_seconds(stored_at), seconds) * seconds AS begun
    FROM stream_entries JOIN last_cells USING (directory)
),
grown AS (
    SELECT directory, stream, partition, seconds, last, begun, max(entry) + 1 AS end_offset
    FROM came GROUP BY directory, stream, partition, seconds, last, begun
),
growths AS (
    SELECT directory, stream, partition, end_offset, begun, seconds,
        coalesce(lead(begun) OVER (
            PARTITION BY directory, stream, partition ORDER BY begun), last + seconds) AS gone
    FROM grown
),
lasts AS (
    SELECT directory, stream, partition, end_offset,
        explode(sequence(begun, gone - seconds, seconds)) AS begins
    FROM growths WHERE begun < gone
),
segments AS (
    SELECT directory, stream, partition, base, seconds, min(begun) AS begun,
        CASE WHEN bool_or(is_there) THEN max(last) + max(seconds)
            ELSE div(unix_seconds(max(dropped_at)), seconds) * seconds END AS gone
    FROM came GROUP BY directory, stream, partition, base, seconds
),
alive AS (
    SELECT directory, stream, partition, base,
        explode(sequence(begun, gone - seconds, seconds)) AS begins
    FROM segments WHERE begun < gone
),
firsts AS (
    SELECT directory, stream, partition, begins, min(base) AS first_offset
    FROM alive GROUP BY directory, stream, partition, begins
),
reached AS (
    SELECT directory, consumer_group, stream, partition, begins,
        coalesce(end_offset, 0) AS end_offset,
        least(greatest(next_offset, coalesce(first_offset, 0)), coalesce(end_offset, 0))
            AS next_offset
    FROM reading
    LEFT JOIN lasts USING (directory, stream, partition, begins)
    LEFT JOIN firsts USING (directory, stream, partition, begins)
),
times AS (
    SELECT directory, stream, partition, entry, min(stored_at) AS stored_at
    FROM stream_entries GROUP BY directory, stream, partition, entry
),
summed AS (
    SELECT reached.directory, consumer_group, reached.stream, begins,
        sum(end_offset - next_offset) AS waiting, min(stored_at) AS oldest
    FROM reached
    LEFT JOIN times
        ON reached.directory = times.directory AND reached.stream = times.stream
        AND reached.partition = times.partition AND next_offset = entry
        AND next_offset < end_offset
    GROUP BY reached.directory, consumer_group, reached.stream, begins
)
SELECT directory, consumer_group, stream, timestamp_seconds(begins) AS time, seconds,
    CAST(waiting AS BIGINT) AS waiting,
    least((begins + seconds) * 1000, unix_millis(end_at)) - unix_millis(oldest) AS oldest_ms
FROM summed JOIN last_cells USING (directory)
ORDER BY directory, consumer_group, stream, time
