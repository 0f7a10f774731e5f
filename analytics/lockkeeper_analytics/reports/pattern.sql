-- `enqueued` and `dequeued` are the means of messages in such an hour (UTC), `hours` how many there
-- were between the first and the last that anything happened in; those at the ends are shorter.
WITH counts AS (
    SELECT directory, div(second, 3600) AS number, sum(enqueued) AS came, sum(dequeued) AS went
    FROM moves GROUP BY ALL
),
spans AS (
    SELECT directory, min(number) AS begins, max(number) AS stops FROM counts GROUP BY ALL
),
hours AS (
    SELECT directory, explode(sequence(begins, stops)) AS number FROM spans
),
named AS (
    -- The epoch began on a Thursday.
    SELECT directory, came, went, number % 24 AS hour, (div(number, 24) + 3) % 7 AS day
    FROM hours LEFT JOIN counts USING (directory, number)
),
means AS (
    SELECT directory, day, hour,
        coalesce(sum(came), 0) / count(*) AS enqueued,
        coalesce(sum(went), 0) / count(*) AS dequeued,
        count(*) AS hours
    FROM named GROUP BY ALL
)
SELECT directory,
    CASE day WHEN 0 THEN 'Monday' WHEN 1 THEN 'Tuesday' WHEN 2 THEN 'Wednesday'
        WHEN 3 THEN 'Thursday' WHEN 4 THEN 'Friday' WHEN 5 THEN 'Saturday' ELSE 'Sunday' END
        AS weekday,
    CAST(hour AS INT) AS hour,
    CAST(enqueued AS DOUBLE) AS enqueued,
    CAST(dequeued AS DOUBLE) AS dequeued,
    hours
FROM means
ORDER BY directory, day, means.hour
