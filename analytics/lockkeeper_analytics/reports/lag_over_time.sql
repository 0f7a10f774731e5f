-- What each group had not consumed of a stream at the end of each cell of time, in all partitions:
-- from the first text that tells of the group on. `oldest_ms` is how long the first message of
-- these had been there, in the last cell when the journal ended; null where no record has it any
-- more. A stream that is declared anew begins anew: what it had before has `gone` with its segments.
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
    SELECT directory, stream, partition, seconds, base, entry, stored_at,
        div(unix_seconds(stored_at), seconds) * seconds AS begun,
        CASE WHEN is_there THEN last + seconds
            ELSE div(unix_seconds(dropped_at), seconds) * seconds END AS gone
    FROM stream_entries JOIN last_cells USING (directory)
),
grown AS (
    SELECT directory, stream, partition, base, gone, seconds, begun, max(entry) + 1 AS end_offset
    FROM came WHERE begun < gone
    GROUP BY directory, stream, partition, base, gone, seconds, begun
),
growths AS (
    SELECT directory, stream, partition, base, seconds, begun,
        max(end_offset) OVER segment AS end_offset,
        coalesce(lead(begun) OVER segment, gone) AS grown_at
    FROM grown
    WINDOW segment AS (PARTITION BY directory, stream, partition, base, gone ORDER BY begun)
),
alive AS (
    SELECT directory, stream, partition, base, end_offset,
        explode(sequence(begun, grown_at - seconds, seconds)) AS begins
    FROM growths
),
bounds AS (
    SELECT directory, stream, partition, begins, min(base) AS first_offset,
        max(end_offset) AS end_offset
    FROM alive GROUP BY directory, stream, partition, begins
),
reached AS (
    SELECT directory, consumer_group, stream, partition, begins,
        coalesce(end_offset, 0) AS end_offset,
        least(greatest(next_offset, coalesce(first_offset, 0)), coalesce(end_offset, 0))
            AS next_offset
    FROM reading
    LEFT JOIN bounds USING (directory, stream, partition, begins)
),
aged AS (
    SELECT reached.directory, consumer_group, reached.stream, begins,
        end_offset - next_offset AS waiting, min(stored_at) AS oldest
    FROM reached
    LEFT JOIN came
        ON reached.directory = came.directory AND reached.stream = came.stream
        AND reached.partition = came.partition AND next_offset = entry
        AND next_offset < end_offset AND begun <= begins AND begins < gone
    GROUP BY reached.directory, consumer_group, reached.stream, reached.partition, begins,
        end_offset, next_offset
),
summed AS (
    SELECT directory, consumer_group, stream, begins, sum(waiting) AS waiting,
        min(oldest) AS oldest
    FROM aged GROUP BY directory, consumer_group, stream, begins
)
SELECT directory, consumer_group, stream, timestamp_seconds(begins) AS time, seconds,
    CAST(waiting AS BIGINT) AS waiting,
    -- What came may be behind the end where somebody has set the clock back.
    greatest(least((begins + seconds) * 1000, unix_millis(end_at)), unix_millis(oldest))
        - unix_millis(oldest) AS oldest_ms
FROM summed JOIN last_cells USING (directory)
ORDER BY directory, consumer_group, stream, time
