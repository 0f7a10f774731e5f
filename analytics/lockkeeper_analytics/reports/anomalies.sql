-- Periods of twelve cells (a journal has 25 at most), against the median of the twelve before them,
-- six at least: of fewer a median says little. Far is Iglewicz and Hoaglin's modified z-score above
-- 3.5, by the median absolute deviation, a twentieth of the median at least, since even traffic has
-- hardly any. What is told is twice as much or half, and by twenty messages or ms: less is no
-- alarm. The last period of a directory is not over, and left out.
WITH placed AS (
    SELECT directory, destination_kind, destination, enqueued, dequeued, dead_lettered,
        div(second, seconds) * seconds AS begins
    FROM (SELECT moves.*, (SELECT seconds * 12 FROM cells) AS seconds FROM moves) told
),
counts AS (
    SELECT directory, destination_kind, destination, begins,
        coalesce(sum(enqueued), 0) AS enqueued,
        coalesce(sum(dequeued), 0) AS dequeued,
        coalesce(sum(dead_lettered), 0) AS dead_lettered
    FROM placed GROUP BY ALL
),
over_at AS (SELECT directory, max(begins) AS last FROM counts GROUP BY directory),
spans AS (
    SELECT directory, destination_kind, destination, min(begins) AS begins, last
    FROM counts JOIN over_at USING (directory)
    GROUP BY directory, destination_kind, destination, last
),
periods AS (
    SELECT directory, destination_kind, destination,
        explode(sequence(begins, last - seconds, seconds)) AS begins
    FROM (SELECT spans.*, (SELECT seconds * 12 FROM cells) AS seconds FROM spans) told
    WHERE begins < last
),
filled AS (
    SELECT directory, destination_kind, destination, begins,
        coalesce(enqueued, 0) AS enqueued, coalesce(dequeued, 0) AS dequeued,
        coalesce(dead_lettered, 0) AS dead_lettered
    FROM periods LEFT JOIN counts USING (directory, destination_kind, destination, begins)
),
taken AS (
    SELECT directory, destination_kind, destination, latency_ms,
        div(unix_seconds(happened_at), seconds) * seconds AS begins
    FROM (
        SELECT acknowledged.*, (SELECT seconds * 12 FROM cells) AS seconds FROM acknowledged
    ) told
    WHERE latency_ms IS NOT NULL
),
late AS (
    SELECT directory, destination_kind, destination, begins,
        percentile_approx(latency_ms, 0.99, 1000) AS value
    FROM taken GROUP BY ALL
),
measures AS (
    SELECT directory, destination_kind, destination, begins, 'enqueued' AS measure,
        CAST(enqueued AS DOUBLE) AS value
    FROM filled
    UNION ALL
    SELECT directory, destination_kind, destination, begins, 'dequeued', dequeued FROM filled
    UNION ALL
    SELECT directory, destination_kind, destination, begins, 'dead_lettered', dead_lettered
    FROM filled
    UNION ALL
    SELECT directory, destination_kind, destination, begins, 'p99_ms', value
    FROM late JOIN over_at USING (directory) WHERE begins < last
),
compared AS (
    SELECT measures.*, array_agg(value) OVER (
            PARTITION BY directory, destination_kind, destination, measure ORDER BY begins
            ROWS BETWEEN 12 PRECEDING AND 1 PRECEDING) AS earlier
    FROM measures
),
values_before AS (
    SELECT directory, destination_kind, destination, measure, begins, value, earlier,
        explode(earlier) AS one
    FROM compared WHERE size(earlier) >= 6
),
medians AS (
    SELECT directory, destination_kind, destination, measure, begins, value, earlier,
        median(one) AS before
    FROM values_before
    GROUP BY directory, destination_kind, destination, measure, begins, value, earlier
),
distances AS (
    SELECT directory, destination_kind, destination, measure, begins, value, before,
        explode(earlier) AS one
    FROM medians
),
judged AS (
    SELECT directory, destination_kind, destination, measure, begins, value, before,
        greatest(median(abs(one - before)), before * 0.05) AS deviation
    FROM distances
    GROUP BY directory, destination_kind, destination, measure, begins, value, before
)
SELECT directory, destination_kind, destination, measure, timestamp_seconds(begins) AS period,
    (SELECT seconds * 12 FROM cells) AS seconds, value, before,
    CASE WHEN before > 0 THEN value / before END AS ratio,
    CASE WHEN value > before THEN 'higher' ELSE 'lower' END AS flag
FROM judged
WHERE abs(value - before) >= 20
    AND 0.6745 * abs(value - before) > 3.5 * deviation
    AND greatest(value, before) >= 2 * least(value, before)
ORDER BY period DESC, directory, destination_kind, destination, measure
LIMIT 1000
