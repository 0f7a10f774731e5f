-- From records, with the bounds that the journal leaves, and from the histograms of the flight
-- recorder, whose values are taken as spread evenly within each class.
WITH by_records AS (
    SELECT directory, destination_kind, destination, 'records' AS source,
        count(*) AS acknowledged,
        quantile_disc(latency_ms, 0.5)::DOUBLE AS p50_ms,
        quantile_disc(latency_ms, 0.9)::DOUBLE AS p90_ms,
        quantile_disc(latency_ms, 0.99)::DOUBLE AS p99_ms,
        max(latency_ms)::DOUBLE AS max_ms,
        quantile_disc(earliest_ms, 0.5)::DOUBLE AS p50_at_least_ms,
        quantile_disc(latest_ms, 0.5)::DOUBLE AS p50_at_most_ms,
        quantile_disc(earliest_ms, 0.99)::DOUBLE AS p99_at_least_ms,
        quantile_disc(latest_ms, 0.99)::DOUBLE AS p99_at_most_ms
    FROM acknowledged WHERE latency_ms IS NOT NULL GROUP BY ALL
),
classes AS (
    SELECT directory, destination_kind, destination, above, le, sum(n) AS n
    FROM latency_buckets GROUP BY ALL
),
ranked AS (
    SELECT *, sum(n) OVER (each ORDER BY le) AS upto, sum(n) OVER each AS whole
    FROM classes WINDOW each AS (PARTITION BY directory, destination_kind, destination)
),
asked AS (
    SELECT *, above + (le - above) * greatest((whole * share - (upto - n)) / n, 0) AS value
    FROM ranked, (SELECT unnest([0.5, 0.9, 0.99]) AS share) WHERE upto >= whole * share
),
by_statistics AS (
    SELECT directory, destination_kind, destination, 'statistics' AS source,
        max(whole) AS acknowledged,
        (min(value) FILTER (share = 0.5))::DOUBLE AS p50_ms,
        (min(value) FILTER (share = 0.9))::DOUBLE AS p90_ms,
        (min(value) FILTER (share = 0.99))::DOUBLE AS p99_ms,
        max(le)::DOUBLE AS max_ms
    FROM asked GROUP BY ALL
)
FROM by_records UNION ALL BY NAME FROM by_statistics
ORDER BY p99_ms DESC, directory, destination_kind, destination, source
