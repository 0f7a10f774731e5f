-- How far each group is in each partition of the streams that it has an offset of. `next_offset` is
-- where it goes on: the first message that is kept, where retention has ended what it came to
-- before. `lag_ms` is how long the first of those waited at the journal's last moment. Brokers
-- write offsets every five seconds: `progressed_at` is when one that had moved was written. Stuck:
-- the first message has waited for a minute, and the group has not moved for as long; slow: it has
-- waited, but the group moves.
WITH latest AS (
    SELECT directory, consumer_group, stream, partition, next_offset, locked_by
    FROM group_places WHERE is_now
),
moved AS (
    SELECT directory, consumer_group, stream, partition, max(written_at) AS progressed_at
    FROM group_places WHERE has_moved
    GROUP BY directory, consumer_group, stream, partition
),
reached AS (
    SELECT directory, consumer_group, stream, partition, locked_by, first_offset, end_offset,
        least(greatest(next_offset, first_offset), end_offset) AS next_offset
    FROM latest JOIN stream_partitions USING (directory, stream, partition)
),
aged AS (
    SELECT reached.*, stored_at AS oldest_at, progressed_at, end_at,
        unix_millis(end_at) - unix_millis(stored_at) AS waited_ms,
        coalesce(unix_millis(end_at) - unix_millis(progressed_at), 60000) AS silent_ms
    FROM reached
    LEFT JOIN (SELECT * FROM stream_entries WHERE is_there) entries
        ON reached.directory = entries.directory AND reached.stream = entries.stream
        AND reached.partition = entries.partition AND next_offset = entry
    LEFT JOIN moved
        ON reached.directory = moved.directory
        AND reached.consumer_group = moved.consumer_group
        AND reached.stream = moved.stream AND reached.partition = moved.partition
    LEFT JOIN ends ON reached.directory = ends.directory
)
SELECT directory, consumer_group, stream, partition,
    CASE
        WHEN waited_ms < 60000 OR oldest_at IS NULL THEN 'ok'
        WHEN silent_ms >= 60000 THEN 'stuck'
        ELSE 'slow'
    END AS verdict,
    next_offset, end_offset, end_offset - next_offset AS waiting,
    CASE WHEN oldest_at IS NULL THEN 0 ELSE greatest(waited_ms, 0) END AS lag_ms,
    oldest_at, progressed_at, locked_by
FROM aged
ORDER BY waiting DESC, directory, consumer_group, stream, partition
