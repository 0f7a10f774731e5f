-- From records, with the bounds that the journal leaves, and from the histograms of the flight
-- recorder, whose values are taken as spread evenly within each class; these also know messages
-- that were never written. `acknowledged` says how many each row stands for.
WITH classes AS (
    SELECT directory, destination_kind, destination, above, le, sum(n) AS n
    FROM latency_buckets GROUP BY ALL
),
ranked AS (
    SELECT directory, destination_kind, destination, above, le, n,
        sum(n) OVER (PARTITION BY directory, destination_kind, destination ORDER BY le
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS upto,
        CAST(sum(n) OVER (PARTITION BY directory, destination_kind, destination) AS DOUBLE)
            AS whole
    FROM classes
)
SELECT directory, destination_kind, destination, 'records' AS source,
    count(*) AS acknowledged,
    CAST(percentile_approx(latency_ms, 0.5, 1000) AS DOUBLE) AS p50_ms,
    CAST(percentile_approx(latency_ms, 0.9, 1000) AS DOUBLE) AS p90_ms,
    CAST(percentile_approx(latency_ms, 0.99, 1000) AS DOUBLE) AS p99_ms,
    CAST(max(latency_ms) AS DOUBLE) AS max_ms,
    CAST(percentile_approx(earliest_ms, 0.5, 1000) AS DOUBLE) AS p50_at_least_ms,
    CAST(percentile_approx(latest_ms, 0.5, 1000) AS DOUBLE) AS p50_at_most_ms,
    CAST(percentile_approx(earliest_ms, 0.99, 1000) AS DOUBLE) AS p99_at_least_ms,
    CAST(percentile_approx(latest_ms, 0.99, 1000) AS DOUBLE) AS p99_at_most_ms
FROM acknowledged WHERE latency_ms IS NOT NULL
GROUP BY directory, destination_kind, destination
UNION ALL
SELECT directory, destination_kind, destination, 'statistics',
    CAST(max(whole) AS BIGINT),
    CAST(min(CASE WHEN upto >= whole * 0.5
        THEN above + (le - above) * greatest((whole * 0.5 - (upto - n)) / n, 0) END) AS DOUBLE),
    CAST(min(CASE WHEN upto >= whole * 0.9
        THEN above + (le - above) * greatest((whole * 0.9 - (upto - n)) / n, 0) END) AS DOUBLE),
    CAST(min(CASE WHEN upto >= whole * 0.99
        THEN above + (le - above) * greatest((whole * 0.99 - (upto - n)) / n, 0) END) AS DOUBLE),
    CAST(max(le) AS DOUBLE),
    NULL, NULL, NULL, NULL
FROM ranked
GROUP BY directory, destination_kind, destination
ORDER BY p99_ms DESC, directory, destination_kind, destination, source
