-- What lies in which file of which transaction, and where its outcome is (`settled`, null: none).
SELECT DISTINCT placed.directory, placed.transaction, file_id, outcomes.position AS settled
FROM placed LEFT JOIN outcomes
    ON placed.directory = outcomes.directory AND placed.transaction = outcomes.transaction
    AND placed.position < outcomes.position AND placed.position > outcomes.previous
WHERE placed.transaction IS NOT NULL AND placed.kind NOT IN ('commit', 'rollback')
