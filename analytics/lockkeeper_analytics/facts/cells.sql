-- One row: how many `seconds` a cell of time has, so that at most 300 span all that is told of.
WITH moments AS (
    SELECT happened_at AS moment FROM applied_operations
    UNION ALL
    SELECT statistics.at FROM statistics
    UNION ALL
    SELECT end_at FROM ends
),
span AS (
    SELECT coalesce(unix_millis(max(moment)) - unix_millis(min(moment)), 0) / 1000 AS length
    FROM moments
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
