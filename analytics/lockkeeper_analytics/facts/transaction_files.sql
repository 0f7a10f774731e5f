-- The data files that each transaction has records in; `settled` is where its outcome is, null
-- where it has none. `is_prepared` tells that it is prepared there.
SELECT directory, transaction, settled, file_id, bool_or(prepares_it) AS is_prepared
FROM (
    SELECT placed.directory, placed.transaction, outcomes.position AS settled, file_id,
        false AS prepares_it
    FROM placed LEFT JOIN outcomes
        ON placed.directory = outcomes.directory AND placed.transaction = outcomes.transaction
        AND placed.position < outcomes.position AND placed.position > outcomes.previous
    WHERE placed.transaction IS NOT NULL AND placed.kind IN ('add', 'remove')
    UNION ALL
    SELECT directory, transaction, settled, file_id, true FROM prepares
) told
GROUP BY directory, transaction, settled, file_id
