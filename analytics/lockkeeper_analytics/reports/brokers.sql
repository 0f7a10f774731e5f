WITH of_records AS (
    SELECT directory, sum(record_bytes) AS bytes,
        (epoch_ms(max(written_after)) - epoch_ms(min(written_after))) / 1000 AS seconds
    FROM records GROUP BY ALL
),
sums AS (
    SELECT directory, sum(enqueued) - sum(coalesce(dead_lettered, 0)) AS sent,
        sum(acknowledged) AS acknowledged, sum(dead_lettered) AS dead_lettered
    FROM totals_report GROUP BY ALL
),
held AS (SELECT directory, sum(waiting) AS waiting FROM backlog_report GROUP BY ALL),
late AS (
    SELECT directory, quantile_disc(latency_ms, 0.99)::DOUBLE AS p99_ms
    FROM acknowledged GROUP BY ALL
),
life AS (
    SELECT directory, arg_max(broker_name, (file_id, "offset")) AS named,
        count(*) FILTER (event = 'takeover') AS takeovers
    FROM events WHERE event IN ('start', 'takeover', 'stop') GROUP BY ALL
)
SELECT directory,
    coalesce(named, regexp_extract(directory, '([^/]+)/*$', 1)) AS broker,
    coalesce(sent, 0) AS sent,
    coalesce(acknowledged, 0) AS acknowledged,
    coalesce(dead_lettered, 0) AS dead_lettered,
    coalesce(waiting, 0) AS waiting,
    p99_ms,
    coalesce(takeovers, 0) AS takeovers,
    bytes, seconds,
    coalesce(sent, 0) / greatest(seconds, 1) AS per_second
FROM of_records
LEFT JOIN sums USING (directory)
LEFT JOIN held USING (directory)
LEFT JOIN late USING (directory)
LEFT JOIN life USING (directory)
ORDER BY sent DESC, directory
