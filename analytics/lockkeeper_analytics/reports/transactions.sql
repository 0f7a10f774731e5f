-- `state` is `open` (a broker that starts rolls it back), `in_doubt` (prepared: somebody must
-- decide), `committed` or `rolled_back`. `age_ms` runs from the first record to the end, or to the
-- last time that the journal tells; half a minute is half of what transaction managers wait before
-- they give up. An id that is used again is a transaction of its own; what prepares it before its
-- first add or remove prepares nothing. The 1,000 oldest undecided ones are told, and the 100 that
-- took longest of the others.
WITH summed AS (
    SELECT directory, transaction, settled_kind AS outcome,
        bool_or(kind = 'prepare') AS is_prepared,
        min(written(position, written_after, written_before)).written_after AS began_at,
        settled_after AS ended_at,
        count_if(kind = 'add') AS adds,
        count_if(kind = 'remove') AS removes,
        coalesce(sum(message_bytes), 0) AS bytes,
        count(DISTINCT file_id) AS files
    FROM transaction_records
    GROUP BY directory, transaction, settled, settled_kind, settled_after
),
told AS (
    SELECT directory, transaction,
        CASE WHEN transaction LIKE 'XID:%' THEN 'xa' ELSE 'local' END AS kind,
        CASE
            WHEN outcome = 'commit' THEN 'committed'
            WHEN outcome = 'rollback' THEN 'rolled_back'
            WHEN is_prepared THEN 'in_doubt'
            ELSE 'open'
        END AS state,
        outcome IS NOT NULL AS is_decided,
        began_at, ended_at,
        unix_millis(coalesce(ended_at, end_at)) - unix_millis(began_at) AS age_ms,
        adds, removes, bytes, files
    FROM summed LEFT JOIN ends USING (directory)
),
ranked AS (
    SELECT told.*, row_number() OVER (
        PARTITION BY is_decided
        ORDER BY age_ms DESC NULLS LAST, directory, transaction, began_at) AS place
    FROM told
)
SELECT directory, transaction, kind, state,
    CASE
        WHEN age_ms < 30000 OR age_ms IS NULL THEN 'ok'
        WHEN is_decided THEN 'slow'
        ELSE 'stuck'
    END AS verdict,
    began_at, ended_at, age_ms, adds, removes, bytes, files
FROM ranked
WHERE place <= CASE WHEN is_decided THEN 100 ELSE 1000 END
ORDER BY is_decided, age_ms DESC NULLS LAST, directory, transaction, began_at
