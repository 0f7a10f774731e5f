-- Pairs of data files: records in `file_id` end or move something that lies in `refers`.
WITH
-- Where a message lay besides the place of its first add: where it was moved, where it came again.
others AS (
    SELECT stays.directory, stays.stored, arrival, place_of(position, record_position) AS place
    FROM later_arrivals later JOIN message_stays stays
        ON later.directory = stays.directory
        AND later.destination_kind = stays.destination_kind
        AND later.destination = stays.destination AND later.message_id = stays.message_id
        AND place_of(position, record_position) > place_of(added, stored)
        AND (stays.ended IS NULL OR place_of(position, record_position)
            < place_of(stays.ended, stays.ender))
    WHERE arrival IN ('moved', 'duplicate')
),
lay AS (
    SELECT others.directory, others.stored, place FROM others WHERE arrival = 'moved'
    UNION ALL
    SELECT DISTINCT stays.directory, stays.stored, place_of(added, stays.stored)
    FROM message_stays stays JOIN others
        ON stays.directory = others.directory AND stays.stored = others.stored
    WHERE arrival = 'moved'
),
moved AS (
    SELECT directory, stored, place, lag(place) OVER (
        PARTITION BY directory, stored ORDER BY place) AS previous
    FROM lay
),
ends AS (
    SELECT directory, stored, located <> stored AS is_moved, ender, place_of(ended, ender) AS place
    FROM message_lifetimes WHERE end_kind IN ('remove', 'unmatched')
),
ends_of_moved AS (
    SELECT ends.directory, ender, max(lay.place).record_position AS located
    FROM ends JOIN lay
        ON ends.directory = lay.directory AND ends.stored = lay.stored AND lay.place < ends.place
    WHERE is_moved
    GROUP BY ends.directory, ender
),
chained AS (
    SELECT directory, destination_kind, destination, subscription, since, until,
        coalesce(sum(CASE WHEN until.kind = 'subscribe' THEN 0 ELSE 1 END) OVER (
            PARTITION BY directory, destination_kind, destination, subscription ORDER BY since
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS chain
    FROM subscribed
),
-- One that was made again needs the file of each time until it is gone.
made AS (
    SELECT directory, since, max(CASE WHEN until.kind <> 'subscribe' THEN until.position END) OVER (
        PARTITION BY directory, destination_kind, destination, subscription, chain) AS gone
    FROM chained
),
pairs AS (
    SELECT directory, shiftright(ender, 32) AS file_id, shiftright(stored, 32) AS refers
    FROM ends WHERE NOT is_moved
    UNION ALL
    SELECT ends.directory, shiftright(ends.ender, 32),
        shiftright(coalesce(located, ends.stored), 32)
    FROM ends LEFT JOIN ends_of_moved
        ON ends.directory = ends_of_moved.directory AND ends.ender = ends_of_moved.ender
    WHERE is_moved
    UNION ALL
    SELECT ends.directory, shiftright(ender, 32), shiftright(others.place.record_position, 32)
    FROM ends JOIN others
        ON ends.directory = others.directory AND ends.stored = others.stored
        AND arrival = 'duplicate' AND others.place < ends.place
    UNION ALL
    SELECT directory, shiftright(place.record_position, 32),
        shiftright(previous.record_position, 32)
    FROM moved WHERE previous IS NOT NULL
    UNION ALL
    SELECT directory, shiftright(settled, 32), file_id
    FROM transaction_files WHERE settled IS NOT NULL
    UNION ALL
    SELECT directory, shiftright(gone, 32), shiftright(since, 32) FROM made WHERE gone IS NOT NULL
    UNION ALL
    SELECT /*+ BROADCAST(periods) */ applied.directory, shiftright(purged, 32),
        shiftright(record_position, 32)
    FROM applied_operations applied JOIN periods
        ON applied.directory = periods.directory
        AND applied.destination_kind = periods.destination_kind
        AND applied.destination = periods.destination
        AND position > begins AND position < purged
    WHERE kind IN ('add', 'update')
)
SELECT DISTINCT directory, CAST(file_id AS INT) AS file_id, CAST(refers AS INT) AS refers
FROM pairs WHERE file_id <> refers
