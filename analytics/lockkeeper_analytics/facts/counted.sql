-- The flight recorder's statistics with what each line adds to the one before: `new_…`. Counters
-- begin anew with each run of a broker; of run 0 the beginning is gone, so its first line adds
-- nothing that is known.
WITH lines AS (
    SELECT DISTINCT directory, (file_id::BIGINT << 32) + "offset" AS position, "at",
        false AS is_start
    FROM statistics
    UNION ALL
    SELECT directory, (file_id::BIGINT << 32) + "offset", "at", event <> 'stop'
    FROM events WHERE event IN ('start', 'takeover', 'stop')
),
placed AS (
    SELECT directory, position,
        count(*) FILTER (is_start) OVER so_far AS run,
        max(position) FILTER (is_start) OVER so_far AS run_position,
        lag("at") OVER so_far AS previous_at
    FROM lines
    WINDOW so_far AS (PARTITION BY directory ORDER BY position)
),
figures AS (
    SELECT *, (file_id::BIGINT << 32) + "offset" AS position FROM statistics
)
SELECT figures.*, run, run_position, previous_at,
    enqueued - coalesce(lag(enqueued) OVER earlier, if(run > 0, 0, NULL)) AS new_enqueued,
    dequeued - coalesce(lag(dequeued) OVER earlier, if(run > 0, 0, NULL)) AS new_dequeued,
    dispatched - coalesce(lag(dispatched) OVER earlier, if(run > 0, 0, NULL)) AS new_dispatched,
    redelivered - coalesce(lag(redelivered) OVER earlier, if(run > 0, 0, NULL))
        AS new_redelivered,
    expired - coalesce(lag(expired) OVER earlier, if(run > 0, 0, NULL)) AS new_expired,
    dead_lettered - coalesce(lag(dead_lettered) OVER earlier, if(run > 0, 0, NULL))
        AS new_dead_lettered,
    never_written - coalesce(lag(never_written) OVER earlier, if(run > 0, 0, NULL))
        AS new_never_written,
    coalesce(lag(latency_count) OVER earlier, if(run > 0, []::BIGINT[], NULL)) AS earlier_count
FROM figures JOIN placed USING (directory, position)
WINDOW earlier AS (
    PARTITION BY directory, run, destination_kind, destination ORDER BY position
)
