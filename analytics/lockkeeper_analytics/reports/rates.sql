-- Records count where they happened. What a line of the statistics counts beyond the records in
-- front of it, because they were never written, is spread evenly over the time it stands for.
WITH moved AS (
    SELECT *, to_timestamp(epoch_ms(happened_at) // 1000 // seconds * seconds) AS time
    FROM effects, cells WHERE kind IN ('add', 'remove')
),
by_records AS (
    SELECT directory, destination_kind, destination, time,
        count(*) FILTER (kind = 'add') AS enqueued,
        count(*) FILTER (kind = 'remove') AS dequeued
    FROM moved WHERE time IS NOT NULL GROUP BY ALL
),
dead AS (
    SELECT directory, origin_kind AS destination_kind, origin AS destination, time,
        count(*) AS dead_lettered
    FROM moved
    WHERE time IS NOT NULL AND kind = 'add' AND dead_letter_cause IS NOT NULL GROUP BY ALL
),
marks AS (
    SELECT DISTINCT directory, position, true AS counts FROM counted
    UNION ALL
    SELECT directory, (file_id::BIGINT << 32) + "offset", false
    FROM events WHERE event IN ('start', 'takeover')
),
recorded AS (
    SELECT each.directory, destination_kind, destination, mark.position,
        count(*) FILTER (kind = 'add') AS adds,
        count(*) FILTER (kind = 'remove') AS removes
    FROM moved each ASOF JOIN marks mark
        ON each.directory = mark.directory AND each.position <= mark.position
    WHERE mark.counts GROUP BY ALL
),
beyond AS (
    SELECT directory, destination_kind, destination,
        epoch_ms(coalesce(previous_at, "at")) / 1000 AS starts, epoch_ms("at") / 1000 AS ends,
        greatest(new_enqueued - coalesce(adds, 0), 0) AS enqueued,
        greatest(new_dequeued - coalesce(removes, 0), 0) AS dequeued,
        new_redelivered AS redelivered
    FROM counted LEFT JOIN recorded USING (directory, destination_kind, destination, position)
),
steps AS (
    SELECT *, unnest(generate_series(
        starts::BIGINT // seconds * seconds, ends::BIGINT // seconds * seconds, seconds
    )) AS begins
    FROM (SELECT * REPLACE (floor(starts) AS starts, floor(ends) AS ends),
        starts AS exact_start, ends AS exact_end FROM beyond
        WHERE enqueued > 0 OR dequeued > 0 OR redelivered > 0), cells
),
shares AS (
    SELECT *, to_timestamp(begins) AS time,
        if(exact_end > exact_start,
            (least(exact_end, begins + seconds) - greatest(exact_start, begins))
                / (exact_end - exact_start),
            1) AS share
    FROM steps
),
spread AS (
    SELECT directory, destination_kind, destination, time,
        enqueued * share AS enqueued, dequeued * share AS dequeued,
        redelivered * share AS redelivered
    FROM shares
)
SELECT directory, destination_kind, destination, time,
    coalesce(sum(enqueued), 0)::DOUBLE AS enqueued,
    coalesce(sum(dequeued), 0)::DOUBLE AS dequeued,
    coalesce(sum(dead_lettered), 0)::DOUBLE AS dead_lettered,
    coalesce(sum(redelivered), 0)::DOUBLE AS redelivered,
    (SELECT seconds FROM cells) AS seconds
FROM (FROM by_records UNION ALL BY NAME FROM dead UNION ALL BY NAME FROM spread)
GROUP BY directory, destination_kind, destination, time
ORDER BY directory, destination_kind, destination, time
