-- One row for each transaction.
WITH told AS (
    SELECT directory, transaction, settled, settled_kind, settled_after, settled_before,
        count_if(kind = 'add') AS adds, count_if(kind = 'remove') AS removes,
        coalesce(sum(message_bytes), 0) AS message_bytes,
        array_sort(array_agg(DISTINCT destination_kind || '://' || destination)
            FILTER (WHERE kind <> 'prepare')) AS destinations,
        min(written(position, written_after, written_before)) AS began,
        max(written(position, written_after, written_before)) FILTER (WHERE kind = 'prepare')
            AS prepared,
        array_sort(array_agg(DISTINCT CAST(file_id AS BIGINT))) AS files
    FROM transaction_records
    GROUP BY directory, transaction, settled, settled_kind, settled_after, settled_before
)
SELECT told.directory, journals.broker, transaction,
    CASE WHEN transaction LIKE 'XID:%' THEN 'xa' ELSE 'local' END AS kind,
    CASE
        WHEN settled_kind = 'commit' THEN 'committed'
        WHEN settled_kind = 'rollback' THEN 'rolled_back'
        WHEN prepared IS NOT NULL THEN 'prepared'
        ELSE 'open'
    END AS outcome,
    adds, removes, CAST(message_bytes AS BIGINT) AS message_bytes, destinations,
    began.written_after AS began_earliest, began.written_before AS began_latest,
    prepared.written_after AS prepared_earliest, prepared.written_before AS prepared_latest,
    settled_after AS ended_earliest, settled_before AS ended_latest,
    CAST(shiftright(began.position, 32) AS INT) AS file_id, files
FROM told
LEFT JOIN journals ON told.directory = journals.directory
ORDER BY settled NULLS LAST, began.position
