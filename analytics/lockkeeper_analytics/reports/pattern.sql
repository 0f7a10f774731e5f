WITH counts AS (
    SELECT directory, second // 3600 AS number, sum(enqueued) AS came, sum(dequeued) AS went
    FROM moves GROUP BY ALL
),
hours AS (
    SELECT directory, unnest(generate_series(min(number), max(number))) AS number
    FROM counts GROUP BY directory
)
SELECT directory,
    dayname(to_timestamp(number * 3600)) AS weekday,
    hour(to_timestamp(number * 3600)) AS hour,
    (coalesce(sum(came), 0) / count(*))::DOUBLE AS enqueued,
    (coalesce(sum(went), 0) / count(*))::DOUBLE AS dequeued,
    count(*) AS hours
FROM hours LEFT JOIN counts USING (directory, number)
GROUP BY ALL
ORDER BY directory, min(isodow(to_timestamp(number * 3600))), hour
