-- `broker` is the last name that an event tells, else the directory's. `sent` counts messages
-- without dead letters, `per_second` is their mean over `seconds`, from the first record to the
-- last; `acknowledged` leaves out dead letter queues, as the head of the page does. `bytes` are
-- those of all records. `p99_ms` is of what records acknowledge.
WITH of_records AS (
    SELECT directory, sum(record_bytes) AS bytes,
        (unix_millis(max(written_after)) - unix_millis(min(written_after))) / 1000 AS seconds
    FROM records GROUP BY directory
),
sums AS (
    SELECT directory, sum(enqueued) - sum(coalesce(dead_lettered, 0)) AS sent,
        sum(CASE WHEN NOT is_dead_letter_queue THEN acknowledged END) AS acknowledged,
        sum(dead_lettered) AS dead_lettered
    FROM totals_report GROUP BY directory
),
held AS (
    SELECT directory, count_if(NOT hidden) AS waiting
    FROM message_lifetimes
    WHERE ended IS NULL AND NOT is_of_streams(destination_kind, destination)
    GROUP BY directory
),
late AS (
    SELECT directory, CAST(percentile_approx(latency_ms, 0.99, 1000) AS DOUBLE) AS p99_ms
    FROM acknowledged GROUP BY directory
),
life AS (
    SELECT directory, count_if(event = 'takeover') AS takeovers
    FROM broker_events GROUP BY directory
)
SELECT directory,
    broker,
    coalesce(sent, 0) AS sent,
    coalesce(acknowledged, 0) AS acknowledged,
    coalesce(dead_lettered, 0) AS dead_lettered,
    coalesce(waiting, 0) AS waiting,
    p99_ms,
    coalesce(takeovers, 0) AS takeovers,
    bytes, seconds,
    coalesce(sent, 0) / greatest(seconds, 1) AS per_second
FROM of_records
JOIN broker_names USING (directory)
LEFT JOIN sums USING (directory)
LEFT JOIN held USING (directory)
LEFT JOIN late USING (directory)
LEFT JOIN life USING (directory)
ORDER BY sent DESC, directory
