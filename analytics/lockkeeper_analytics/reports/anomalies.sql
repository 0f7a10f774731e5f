-- Periods of twelve cells, against the median of the twelve before them (six at least), by the
-- median absolute deviation. The last period is not over, and left out.
WITH long AS (SELECT seconds * 12 AS seconds FROM cells),
counts AS (
    SELECT directory, destination_kind, destination, second // seconds * seconds AS begins,
        coalesce(sum(enqueued), 0)::DOUBLE AS enqueued,
        coalesce(sum(dequeued), 0)::DOUBLE AS dequeued,
        coalesce(sum(dead_lettered), 0)::DOUBLE AS dead_lettered
    FROM moves, long GROUP BY ALL
),
over_at AS (SELECT max(begins) AS last FROM counts),
periods AS (
    SELECT directory, destination_kind, destination,
        unnest(generate_series(min(begins), any_value(last - seconds), any_value(seconds)))
            AS begins
    FROM counts, over_at, long GROUP BY directory, destination_kind, destination
),
filled AS (
    SELECT directory, destination_kind, destination, begins,
        coalesce(enqueued, 0) AS enqueued, coalesce(dequeued, 0) AS dequeued,
        coalesce(dead_lettered, 0) AS dead_lettered
    FROM periods LEFT JOIN counts USING (directory, destination_kind, destination, begins)
),
late AS (
    SELECT directory, destination_kind, destination,
        epoch_ms(happened_at) // 1000 // seconds * seconds AS begins, 'p99_ms' AS measure,
        quantile_disc(latency_ms, 0.99)::DOUBLE AS value
    FROM acknowledged, long WHERE latency_ms IS NOT NULL GROUP BY ALL
),
measures AS (
    FROM (UNPIVOT filled ON enqueued, dequeued, dead_lettered INTO NAME measure VALUE value)
    UNION ALL BY NAME
    (SELECT late.* FROM late, over_at WHERE begins < last)
),
compared AS (
    SELECT *, list(value) OVER (
            PARTITION BY directory, destination_kind, destination, measure ORDER BY begins
            ROWS BETWEEN 12 PRECEDING AND 1 PRECEDING) AS earlier
    FROM measures
),
judged AS (
    SELECT *, list_median(earlier) AS before,
        greatest(list_median(list_transform(earlier, lambda each: abs(each - before))),
            before * 0.05) AS deviation
    FROM compared WHERE len(earlier) >= 6
)
SELECT directory, destination_kind, destination, measure, to_timestamp(begins) AS period, seconds,
    value, before,
    if(before > 0, value / before, NULL) AS ratio,
    if(value > before, 'higher', 'lower') AS flag
FROM judged, long
WHERE abs(value - before) >= 20
    AND 0.6745 * abs(value - before) > 3.5 * deviation
    AND greatest(value, before) >= 2 * least(value, before)
ORDER BY period DESC, directory, destination_kind, destination, measure
LIMIT 1000
