-- How many messages each line of the statistics adds to which class of latency: more than `above`
-- ms, up to `le`; the last class also counts what took longer.
WITH numbered AS (
    SELECT *, unnest(generate_series(1, len(latency_le))) AS number
    FROM counted WHERE earlier_count IS NOT NULL
)
SELECT directory, destination_kind, destination, position, "at",
    coalesce(latency_le[number - 1], 0) AS above,
    latency_le[number] AS le,
    latency_count[number] - coalesce(earlier_count[number], 0) AS n
FROM numbered
WHERE n > 0
