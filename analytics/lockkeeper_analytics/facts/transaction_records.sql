-- What belongs to each transaction: its adds and removes, and what prepared it after the first of
-- these. `settled` is where its outcome is, `settled_kind` what that is (null: none): an id may be
-- used again after it.
SELECT directory, transaction, position, kind, file_id, destination_kind, destination,
    message_bytes, written_after, written_before,
    settled, settled_kind, settled_after, settled_before
FROM (
    SELECT placed.directory, placed.transaction, placed.position, placed.kind, file_id,
        destination_kind, destination, message_bytes, placed.written_after, placed.written_before,
        outcomes.position AS settled, outcomes.kind AS settled_kind,
        outcomes.written_after AS settled_after, outcomes.written_before AS settled_before,
        count(CASE WHEN placed.kind <> 'prepare' THEN 1 END) OVER (
            PARTITION BY placed.directory, placed.transaction, outcomes.position
            ORDER BY placed.position
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS operations
    FROM placed LEFT JOIN outcomes
        ON placed.directory = outcomes.directory AND placed.transaction = outcomes.transaction
        AND placed.position < outcomes.position AND placed.position > outcomes.previous
    WHERE placed.transaction IS NOT NULL AND placed.kind IN ('add', 'remove', 'prepare')
) told
WHERE operations > 0
