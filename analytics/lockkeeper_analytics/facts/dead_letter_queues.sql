-- Dead letter queues: the shared one, whatever came there, and each destination where a message died
-- and of which above all letters were held. So one that is sent back with its cause makes none of
-- the queue that it was meant for, even where the record of its death is gone.
SELECT directory, 'queue' AS destination_kind, 'ActiveMQ.DLQ' AS destination FROM journals
UNION
SELECT came.directory, came.destination_kind, came.destination
FROM (
    SELECT directory, destination_kind, destination, count(*) AS messages
    FROM applied_operations WHERE kind IN ('add', 'update')
    GROUP BY directory, destination_kind, destination
) came
JOIN (
    SELECT directory, destination_kind, destination, count(*) AS letters
    FROM dead_letter_records
    GROUP BY directory, destination_kind, destination
    HAVING count_if(NOT is_moved) > 0
) told
    ON came.directory = told.directory AND came.destination_kind = told.destination_kind
    AND came.destination = told.destination
WHERE 2 * letters > messages
