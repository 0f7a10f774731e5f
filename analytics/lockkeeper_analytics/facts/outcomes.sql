-- The outcomes of transactions. One decides the records of its transaction that lie in front of it,
-- behind the `previous` one: an id may be used again.
SELECT directory, transaction, kind, position, written_after, written_before,
    coalesce(lag(position) OVER (PARTITION BY directory, transaction ORDER BY position), -1)
        AS previous
FROM placed
WHERE kind IN ('commit', 'rollback')
