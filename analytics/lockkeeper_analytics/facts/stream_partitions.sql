-- Partitions of the streams that are there: those that messages tell of, and those that streams
-- were declared with. Of each the first offset that is kept, the one behind the last message, and
-- the messages that are there.
WITH declared AS (
    SELECT declared_streams.directory, stream, partitions,
        row_number() OVER (
            PARTITION BY declared_streams.directory, stream ORDER BY position DESC) AS place
    FROM declared_streams JOIN stream_texts
        ON declared_streams.directory = stream_texts.directory
        AND CAST(file_id AS BIGINT) * 4294967296 + location = position
    WHERE ended IS NULL AND partitions IS NOT NULL
),
numbered AS (
    SELECT directory, stream, explode(sequence(0, partitions - 1)) AS partition
    FROM declared WHERE place = 1
),
held AS (
    SELECT directory, stream, partition, min(base) AS first_offset,
        max(entry) + 1 AS end_offset,
        count_if(is_kept) AS messages,
        sum(CASE WHEN is_kept THEN message_bytes END) AS bytes,
        min(CASE WHEN is_kept THEN stored_at END) AS oldest_at,
        max(CASE WHEN is_kept THEN stored_at END) AS newest_at
    FROM stream_entries WHERE is_there
    GROUP BY directory, stream, partition
),
places AS (
    SELECT directory, stream, CAST(partition AS INT) AS partition FROM numbered
    UNION
    SELECT directory, stream, partition FROM held
)
SELECT directory, stream, partition,
    coalesce(first_offset, 0) AS first_offset, coalesce(end_offset, 0) AS end_offset,
    coalesce(messages, 0) AS messages, CAST(coalesce(bytes, 0) AS BIGINT) AS bytes,
    oldest_at, newest_at
FROM places LEFT JOIN held USING (directory, stream, partition)
