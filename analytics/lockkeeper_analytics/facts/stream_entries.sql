-- Messages of streams, by their place: each stay in a segment's queue, where `entry` is the offset
-- and `base` the first of the segment. `is_kept` tells that it is there still, `is_there` that its
-- segment is: retention ends whole segments, at `dropped_at`, with the gaps that messages left which
-- somebody consumed at ActiveMQ. What somebody sent or moved to a segment's queue there is none of the
-- stream: its id is not in the lane of the partition.
WITH placed AS (
    SELECT /*+ BROADCAST(periods) */ told.directory, told.destination_kind, told.destination,
        message_id, message_bytes, stored, ended, purged, purge
    FROM message_lifetimes told LEFT JOIN periods
        ON told.directory = periods.directory
        AND told.destination_kind = periods.destination_kind
        AND told.destination = periods.destination
        AND told.added > begins AND (purged IS NULL OR told.added < purged)
    WHERE is_of_streams(told.destination_kind, told.destination)
),
named AS (
    SELECT directory, message_id, message_bytes, stored, ended, purged, purge,
        segment_part(destination, 1) AS number, segment_part(destination, 2) AS first_one,
        segment_part(destination, 3) AS stream
    FROM placed
    WHERE regexp_like(message_id,
            '^ID:lockkeeper-stream-.*:-?[0-9]{1,14}:-?[0-9]{1,10}:[0-9]{1,18}$')
)
SELECT directory, stream, CAST(number AS INT) AS partition, CAST(first_one AS BIGINT) AS base,
    CAST(regexp_extract(message_id, ':([0-9]+)$', 1) AS BIGINT) AS entry,
    timestamp_millis(CAST(regexp_extract(message_id, ':(-?[0-9]+):-?[0-9]+:[0-9]+$', 1) AS BIGINT))
        AS stored_at,
    message_bytes, stored, ended IS NULL AS is_kept,
    purged IS NULL AS is_there,
    CASE WHEN purged IS NOT NULL THEN purge.happened_at END AS dropped_at
FROM named
WHERE number <> ''
    AND substr(message_id, 1, 30) = concat('ID:lockkeeper-stream-',
        lower(lpad(hex(crc32(concat(number, '.', stream))), 8, '0')), ':')
