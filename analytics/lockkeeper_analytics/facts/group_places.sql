-- How far each group was in each partition of the streams that it had an offset of, by each text
-- that told it: from `written_at` on until the next text, or until the group was deleted; null:
-- that is so now. One that the group never began is at 0. `has_moved` tells that it went on.
WITH placed_offsets AS (
    SELECT directory, consumer_group, stream, partition, stream_offsets.offset AS next_offset,
        locked_by, written_at, CAST(file_id AS BIGINT) * 4294967296 + location AS position
    FROM stream_offsets
),
written AS (
    SELECT DISTINCT placed_offsets.directory, consumer_group, placed_offsets.position, written_at,
        added, ended, ended_at
    FROM placed_offsets JOIN stream_texts
        ON placed_offsets.directory = stream_texts.directory
        AND placed_offsets.position = stream_texts.position
),
followed_by AS (
    SELECT written.*, lead(added) OVER texts AS next_added, lead(written_at) OVER texts AS next_at
    FROM written
    WINDOW texts AS (PARTITION BY directory, consumer_group ORDER BY added, position)
),
texts AS (
    SELECT directory, consumer_group, position, written_at,
        CASE WHEN ended < next_added OR next_added IS NULL THEN ended_at ELSE next_at END
            AS until_at,
        next_added IS NULL AND ended IS NULL AS is_now
    FROM followed_by
),
streams AS (
    SELECT DISTINCT directory, consumer_group, position, stream
    FROM placed_offsets WHERE next_offset IS NOT NULL
),
places AS (
    SELECT directory, stream, partition FROM stream_partitions
    UNION
    SELECT directory, stream, partition FROM stream_entries
    UNION
    SELECT directory, stream, partition FROM placed_offsets WHERE next_offset IS NOT NULL
),
known AS (
    SELECT texts.directory, texts.consumer_group, texts.position, texts.written_at, until_at, is_now,
        streams.stream, places.partition, next_offset, locked_by
    FROM texts
    JOIN streams
        ON texts.directory = streams.directory
        AND texts.consumer_group = streams.consumer_group AND texts.position = streams.position
    JOIN places ON texts.directory = places.directory AND streams.stream = places.stream
    LEFT JOIN placed_offsets
        ON texts.directory = placed_offsets.directory
        AND texts.consumer_group = placed_offsets.consumer_group
        AND texts.position = placed_offsets.position
        AND streams.stream = placed_offsets.stream AND places.partition = placed_offsets.partition
)
SELECT directory, consumer_group, position, stream, partition,
    coalesce(next_offset, 0) AS next_offset, locked_by, written_at, until_at, is_now,
    next_offset IS NOT NULL AND next_offset <> coalesce(lag(next_offset) OVER (
        PARTITION BY directory, consumer_group, stream, partition ORDER BY position), -1)
        AS has_moved
FROM known
