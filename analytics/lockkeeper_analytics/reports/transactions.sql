-- Undecided ones, and the 100 that took longest of the others.
WITH told AS (
    SELECT directory, transaction, kind,
        if(outcome = 'prepared', 'in_doubt', outcome) AS state,
        began_earliest AS began_at, ended_earliest AS ended_at,
        epoch_ms(coalesce(ended_earliest, end_at)) - epoch_ms(began_earliest) AS age_ms,
        adds, removes, coalesce(message_bytes, 0) AS bytes, len(files) AS files
    FROM transactions LEFT JOIN ends USING (directory)
),
judged AS (
    SELECT directory, transaction, kind, state,
        CASE
            WHEN age_ms < 30000 OR age_ms IS NULL THEN 'ok'
            WHEN state IN ('committed', 'rolled_back') THEN 'slow'
            ELSE 'stuck'
        END AS verdict,
        began_at, ended_at, age_ms, adds, removes, bytes, files
    FROM told
)
FROM (
    (FROM judged WHERE state IN ('open', 'in_doubt')
        ORDER BY age_ms DESC NULLS LAST, directory, transaction, began_at LIMIT 1000)
    UNION ALL
    (FROM judged WHERE state IN ('committed', 'rolled_back')
        ORDER BY age_ms DESC NULLS LAST, directory, transaction, began_at LIMIT 100)
)
ORDER BY state IN ('committed', 'rolled_back'),
    age_ms DESC NULLS LAST, directory, transaction, began_at
