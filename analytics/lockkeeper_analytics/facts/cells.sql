-- One row: how many `seconds` a cell of time has, so that at most 300 span all that is told of.
WITH span AS (
    SELECT coalesce(unix_millis(max(last_at)) - unix_millis(min(first_at)), 0) / 1000 AS length
    FROM extents
),
steps AS (
    SELECT * FROM (VALUES (1), (2), (5), (10), (15), (30), (60), (120), (300), (600), (1800),
        (3600), (10800), (21600), (43200), (86400)) AS known(step)
)
SELECT CAST(coalesce(
    min(CASE WHEN length / step <= 300 THEN step END),
    (floor(max(length) / 300 / 86400) + 1) * 86400
) AS BIGINT) AS seconds
FROM span CROSS JOIN steps
