-- Statistics count where there are any (each run's last line, without what was counted before the
-- first one that is asked for), records behind each run's last line and where there are
-- none. Where nothing but records counts, a message came in, too, when only its acknowledgement
-- is left.
WITH latest AS (
    SELECT directory, destination_kind, destination,
        enqueued - coalesce(first_value(enqueued - new_enqueued) OVER first, 0) AS enqueued,
        dequeued - coalesce(first_value(dequeued - new_dequeued) OVER first, 0) AS dequeued,
        dead_lettered - coalesce(first_value(dead_lettered - new_dead_lettered) OVER first, 0)
            AS dead_lettered,
        expired - coalesce(first_value(expired - new_expired) OVER first, 0) AS expired,
        redelivered - coalesce(first_value(redelivered - new_redelivered) OVER first, 0)
            AS redelivered,
        never_written - coalesce(first_value(never_written - new_never_written) OVER first, 0)
            AS never_written,
        list_sum(latency_count) - coalesce(first_value(list_sum(earlier_count)) OVER first, 0)
            AS counted_latencies
    FROM counted
    WINDOW first AS (
        PARTITION BY directory, destination_kind, destination, run ORDER BY position
    )
    QUALIFY row_number() OVER (
        PARTITION BY directory, destination_kind, destination, run ORDER BY position DESC
    ) = 1
),
by_statistics AS (
    SELECT directory, destination_kind, destination, enqueued,
        dequeued - greatest(coalesce(dead_lettered, 0), coalesce(expired, 0)) AS taken,
        if(destination_kind LIKE '%queue', coalesce(counted_latencies, taken), taken)
            AS acknowledged,
        dead_lettered, expired, redelivered, never_written
    FROM latest
),
rest AS (
    SELECT effects.* FROM effects ANTI JOIN counted_ranges counts
    ON effects.directory = counts.directory AND position >= starts AND position <= ends
),
moved AS (
    SELECT directory, destination_kind, destination,
        count(*) FILTER (kind = 'add') AS enqueued,
        count(*) FILTER (kind = 'remove') AS removed
    FROM rest GROUP BY ALL
),
dead AS (
    SELECT directory, origin_kind AS destination_kind, origin AS destination, count(*) AS lost
    FROM rest WHERE kind = 'add' AND dead_letter_cause IS NOT NULL GROUP BY ALL
),
by_records AS (
    SELECT directory, destination_kind, destination,
        coalesce(enqueued, 0) AS enqueued,
        greatest(coalesce(removed, 0) - coalesce(lost, 0), 0) AS acknowledged,
        coalesce(lost, 0) AS dead_lettered
    FROM moved FULL JOIN dead USING (directory, destination_kind, destination)
),
by_acknowledgements AS (
    SELECT directory, destination_kind, destination, count(DISTINCT message_id) AS enqueued
    FROM acknowledged
    WHERE arrived_at IS NULL AND directory NOT IN (SELECT directory FROM statistics)
    GROUP BY ALL
)
SELECT directory, destination_kind, destination,
    sum(enqueued) AS enqueued,
    sum(acknowledged) AS acknowledged,
    sum(dead_lettered) AS dead_lettered,
    sum(expired) AS expired,
    sum(redelivered) AS redelivered,
    sum(never_written) AS never_written
FROM (
    FROM by_statistics UNION ALL BY NAME FROM by_records
    UNION ALL BY NAME FROM by_acknowledgements
)
GROUP BY ALL
ORDER BY enqueued DESC, directory, destination_kind, destination
