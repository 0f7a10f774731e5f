-- The partitions of streams, and what is kept of each; the broker's own stream of delayed messages
-- is left out. `share` is the part of its stream's messages, `of` how many partitions this has. A
-- partition goes to one member of a group: one with twice as many messages as the others on average
-- is hot. Of fewer than 100 messages a share says little.
WITH counted_all AS (
    SELECT stream_partitions.*, sum(messages) OVER whole AS together,
        count(*) OVER whole AS of_them
    FROM stream_partitions WHERE stream <> 'SCHEDULE_TOPIC_XXXX'
    WINDOW whole AS (PARTITION BY directory, stream)
)
SELECT directory, stream, partition, messages, bytes,
    CASE WHEN together > 0 THEN messages / together END AS share,
    of_them AS of,
    first_offset, end_offset, oldest_at, newest_at,
    of_them > 1 AND together >= 100 AND messages * (of_them - 1) >= 2 * (together - messages)
        AS hot
FROM counted_all
ORDER BY directory, stream, partition
