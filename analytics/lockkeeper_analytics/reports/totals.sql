-- `enqueued` counts what came in, dead letters moved here too; `acknowledged` what consumers took,
-- for a topic once for each subscription; `dead_lettered` what left for a dead letter queue.
-- Statistics count where there are any (each run's last line, without what was counted before the
-- first one that is asked for), records behind each run's last line and where there are none.
-- Where nothing but records counts, a message came in, too, when only its acknowledgement is left.
WITH histograms AS (
    SELECT directory, destination_kind, destination, position, sum(n) AS known
    FROM (
        SELECT directory, destination_kind, destination, position, explode(latency_count) AS n
        FROM counted
    ) classes
    GROUP BY ALL
),
added AS (
    SELECT directory, destination_kind, destination, position, sum(n) AS new_latencies
    FROM latency_buckets GROUP BY ALL
),
lines AS (
    SELECT counted.*, known,
        CASE WHEN earlier_count IS NOT NULL OR run > 0
            THEN known - coalesce(new_latencies, 0) END AS known_before
    FROM counted
    LEFT JOIN histograms USING (directory, destination_kind, destination, position)
    LEFT JOIN added USING (directory, destination_kind, destination, position)
),
since_first AS (
    SELECT directory, destination_kind, destination,
        enqueued - coalesce(first_value(enqueued - new_enqueued) OVER lines_so_far, 0) AS enqueued,
        dequeued - coalesce(first_value(dequeued - new_dequeued) OVER lines_so_far, 0) AS dequeued,
        dead_lettered - coalesce(
            first_value(dead_lettered - new_dead_lettered) OVER lines_so_far, 0) AS dead_lettered,
        expired - coalesce(first_value(expired - new_expired) OVER lines_so_far, 0) AS expired,
        redelivered - coalesce(
            first_value(redelivered - new_redelivered) OVER lines_so_far, 0) AS redelivered,
        never_written - coalesce(
            first_value(never_written - new_never_written) OVER lines_so_far, 0) AS never_written,
        known - coalesce(first_value(known_before) OVER lines_so_far, 0) AS counted_latencies,
        lead(position) OVER (
            PARTITION BY directory, destination_kind, destination, run ORDER BY position) AS later
    FROM lines
    WINDOW lines_so_far AS (
        PARTITION BY directory, destination_kind, destination, run ORDER BY position
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    )
),
by_statistics AS (
    SELECT directory, destination_kind, destination, enqueued,
        dequeued - greatest(coalesce(dead_lettered, 0), coalesce(expired, 0)) AS taken,
        counted_latencies, dead_lettered, expired, redelivered, never_written
    FROM since_first WHERE later IS NULL
),
moved AS (
    SELECT directory, destination_kind, destination,
        count_if(kind = 'add') AS enqueued, count_if(kind = 'remove') AS removed
    FROM uncounted GROUP BY ALL
),
-- Of those that left with a cause nobody acknowledged any, but not all died: letters are moved, too.
dead AS (
    SELECT uncounted.directory, uncounted.origin_kind AS destination_kind,
        uncounted.origin AS destination, count(*) AS lost, count(deaths.origin) AS died
    FROM uncounted LEFT JOIN deaths
        ON uncounted.directory = deaths.directory
        AND uncounted.record_position = deaths.record_position
    WHERE kind = 'add' AND uncounted.dead_letter_cause IS NOT NULL
    GROUP BY uncounted.directory, uncounted.origin_kind, uncounted.origin
),
by_records AS (
    SELECT directory, destination_kind, destination,
        coalesce(enqueued, 0) AS enqueued,
        greatest(coalesce(removed, 0) - coalesce(lost, 0), 0) AS acknowledged,
        coalesce(died, 0) AS dead_lettered
    FROM moved FULL JOIN dead USING (directory, destination_kind, destination)
),
by_acknowledgements AS (
    SELECT acknowledged.directory, destination_kind, destination,
        count(DISTINCT message_id) AS enqueued
    FROM acknowledged
    ANTI JOIN (SELECT DISTINCT directory FROM statistics) told
        ON acknowledged.directory = told.directory
    WHERE NOT has_add
    GROUP BY ALL
),
every_count AS (
    SELECT directory, destination_kind, destination, enqueued,
        CASE WHEN destination_kind LIKE '%queue' THEN coalesce(counted_latencies, taken)
            ELSE taken END AS acknowledged,
        dead_lettered, expired, redelivered, never_written
    FROM by_statistics
    UNION ALL
    SELECT directory, destination_kind, destination, enqueued, acknowledged, dead_lettered,
        NULL, NULL, NULL
    FROM by_records
    UNION ALL
    SELECT directory, destination_kind, destination, enqueued, NULL, NULL, NULL, NULL, NULL
    FROM by_acknowledgements
),
sums AS (
    SELECT directory, destination_kind, destination,
        sum(enqueued) AS enqueued,
        sum(acknowledged) AS acknowledged,
        sum(dead_lettered) AS dead_lettered,
        sum(expired) AS expired,
        sum(redelivered) AS redelivered,
        sum(never_written) AS never_written
    FROM every_count
    GROUP BY directory, destination_kind, destination
)
SELECT sums.*, dead_letter_queues.destination IS NOT NULL AS is_dead_letter_queue
FROM sums LEFT JOIN dead_letter_queues
    ON sums.directory = dead_letter_queues.directory
    AND sums.destination_kind = dead_letter_queues.destination_kind
    AND sums.destination = dead_letter_queues.destination
ORDER BY enqueued DESC, sums.directory, sums.destination_kind, sums.destination
