-- A message counts in the cell of its acknowledgement, a line of statistics in that of its time.
WITH placed AS (
    SELECT directory, destination_kind, destination, above, le, n,
        div(unix_seconds(told.at), seconds) * seconds AS begins
    FROM (
        SELECT latency_buckets.*, (SELECT seconds FROM cells) AS seconds FROM latency_buckets
    ) told
),
classes AS (
    SELECT directory, destination_kind, destination, begins, above, le, sum(n) AS n
    FROM placed GROUP BY ALL
),
ranked AS (
    SELECT directory, destination_kind, destination, begins, above, le, n,
        sum(n) OVER (PARTITION BY directory, destination_kind, destination, begins ORDER BY le
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS upto,
        CAST(sum(n) OVER (PARTITION BY directory, destination_kind, destination, begins) AS DOUBLE)
            AS whole
    FROM classes
),
taken AS (
    SELECT directory, destination_kind, destination, latency_ms,
        div(unix_seconds(happened_at), seconds) * seconds AS begins
    FROM (
        SELECT acknowledged.*, (SELECT seconds FROM cells) AS seconds FROM acknowledged
    ) told
    WHERE latency_ms IS NOT NULL
),
told AS (
    SELECT directory, destination_kind, destination, begins, 'records' AS source,
        count(*) AS acknowledged,
        CAST(percentile_approx(latency_ms, 0.5, 1000) AS DOUBLE) AS p50_ms,
        CAST(percentile_approx(latency_ms, 0.99, 1000) AS DOUBLE) AS p99_ms
    FROM taken GROUP BY directory, destination_kind, destination, begins
    UNION ALL
    SELECT directory, destination_kind, destination, begins, 'statistics',
        CAST(max(whole) AS BIGINT),
        CAST(min(CASE WHEN upto >= whole * 0.5
            THEN above + (le - above) * greatest((whole * 0.5 - (upto - n)) / n, 0) END)
            AS DOUBLE),
        CAST(min(CASE WHEN upto >= whole * 0.99
            THEN above + (le - above) * greatest((whole * 0.99 - (upto - n)) / n, 0) END)
            AS DOUBLE)
    FROM ranked GROUP BY directory, destination_kind, destination, begins
)
SELECT directory, destination_kind, destination, timestamp_seconds(begins) AS time,
    (SELECT seconds FROM cells) AS seconds,
    source, acknowledged, p50_ms, p99_ms
FROM told
ORDER BY directory, destination_kind, destination, time, source
