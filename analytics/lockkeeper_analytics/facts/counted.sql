-- The flight recorder's statistics with what each line adds to the one before: `new_…`. Counters
-- begin anew with each run of a broker; of run 0 the beginning is gone, so its first line adds
-- nothing that is known.
WITH figures AS (
    SELECT statistics.*,
        CAST(file_id AS BIGINT) * 4294967296 + statistics.offset AS position FROM statistics
),
marks AS (
    SELECT DISTINCT directory, position, figures.at, false AS is_start FROM figures
    UNION ALL
    SELECT directory, position, broker_events.at, is_start FROM broker_events
),
placed_marks AS (
    SELECT directory, position,
        count(CASE WHEN is_start THEN 1 END) OVER so_far AS run,
        max(CASE WHEN is_start THEN position END) OVER so_far AS run_position,
        lag(marks.at) OVER (PARTITION BY directory ORDER BY position) AS previous_at
    FROM marks
    WINDOW so_far AS (
        PARTITION BY directory ORDER BY position
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    )
),
runs AS (
    SELECT figures.*, run, run_position, previous_at,
        CASE WHEN run > 0 THEN 0 END AS nothing
    FROM figures JOIN placed_marks
        ON figures.directory = placed_marks.directory
        AND figures.position = placed_marks.position
)
SELECT runs.*,
    enqueued - coalesce(lag(enqueued) OVER earlier, nothing) AS new_enqueued,
    dequeued - coalesce(lag(dequeued) OVER earlier, nothing) AS new_dequeued,
    dispatched - coalesce(lag(dispatched) OVER earlier, nothing) AS new_dispatched,
    redelivered - coalesce(lag(redelivered) OVER earlier, nothing) AS new_redelivered,
    expired - coalesce(lag(expired) OVER earlier, nothing) AS new_expired,
    dead_lettered - coalesce(lag(dead_lettered) OVER earlier, nothing) AS new_dead_lettered,
    never_written - coalesce(lag(never_written) OVER earlier, nothing) AS new_never_written,
    lag(latency_count) OVER earlier AS earlier_count
FROM runs
WINDOW earlier AS (
    PARTITION BY directory, run, destination_kind, destination ORDER BY position
)
