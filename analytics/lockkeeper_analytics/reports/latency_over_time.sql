-- A message counts in the cell of its acknowledgement, a line of statistics in that of its time.
WITH by_records AS (
    SELECT directory, destination_kind, destination,
        to_timestamp(epoch_ms(happened_at) // 1000 // seconds * seconds) AS time,
        'records' AS source,
        count(*) AS acknowledged,
        quantile_disc(latency_ms, 0.5)::DOUBLE AS p50_ms,
        quantile_disc(latency_ms, 0.99)::DOUBLE AS p99_ms
    FROM acknowledged, cells WHERE latency_ms IS NOT NULL GROUP BY ALL
),
classes AS (
    SELECT directory, destination_kind, destination,
        to_timestamp(epoch_ms("at") // 1000 // seconds * seconds) AS time, above, le, sum(n) AS n
    FROM latency_buckets, cells GROUP BY ALL
),
ranked AS (
    SELECT *, sum(n) OVER (each ORDER BY le) AS upto, sum(n) OVER each AS whole
    FROM classes WINDOW each AS (PARTITION BY directory, destination_kind, destination, time)
),
asked AS (
    SELECT *, above + (le - above) * greatest((whole * share - (upto - n)) / n, 0) AS value
    FROM ranked, (SELECT unnest([0.5, 0.99]) AS share) WHERE upto >= whole * share
),
by_statistics AS (
    SELECT directory, destination_kind, destination, time, 'statistics' AS source,
        max(whole) AS acknowledged,
        (min(value) FILTER (share = 0.5))::DOUBLE AS p50_ms,
        (min(value) FILTER (share = 0.99))::DOUBLE AS p99_ms
    FROM asked GROUP BY ALL
)
SELECT directory, destination_kind, destination, time, seconds, source, acknowledged,
    p50_ms, p99_ms
FROM (FROM by_records UNION ALL BY NAME FROM by_statistics), cells
ORDER BY directory, destination_kind, destination, time, source
