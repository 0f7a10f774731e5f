-- One row: how many `seconds` a cell of time has, so that at most 300 span all that is told of.
WITH span AS (
    SELECT coalesce(epoch_ms(max("at")) - epoch_ms(min("at")), 0) / 1000 AS seconds
    FROM (SELECT happened_at AS "at" FROM effects UNION ALL SELECT "at" FROM statistics)
),
steps AS (
    SELECT unnest([1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 10800, 21600, 43200, 86400])
        AS step
)
SELECT coalesce(
    min(step) FILTER (span.seconds / step <= 300),
    (floor(max(span.seconds) / 300 / 86400)::BIGINT + 1) * 86400
)::BIGINT AS seconds
FROM span, steps
