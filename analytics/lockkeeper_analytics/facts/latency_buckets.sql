-- How many messages each line of the statistics adds to which class of latency: more than `above`
-- ms, up to `le`; the last class also counts what took longer.
WITH numbered AS (
    SELECT directory, destination_kind, destination, position, counted.at,
        latency_le, latency_count, earlier_count,
        explode(sequence(0, size(latency_le) - 1)) AS number
    FROM counted WHERE size(latency_le) > 0 AND (earlier_count IS NOT NULL OR run > 0)
),
classes AS (
    SELECT directory, destination_kind, destination, position, numbered.at,
        coalesce(get(latency_le, number - 1), 0) AS above,
        get(latency_le, number) AS le,
        get(latency_count, number) - coalesce(get(earlier_count, number), 0) AS n
    FROM numbered
)
SELECT * FROM classes WHERE n > 0
