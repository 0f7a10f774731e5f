-- One row for each acknowledgement that took effect.
WITH held AS (
    SELECT stays.directory, stays.stored, stored_at, located
    FROM message_stays stays JOIN arrivals
        ON stays.directory = arrivals.directory AND stays.stored = arrivals.record_position
)
SELECT acknowledgements.directory, journals.broker, destination_kind, destination, message_id, subscription, outcome,
    happened_after AS acked_at_earliest, happened_before AS acked_at_latest,
    happened_after IS NOT NULL AND happened_before IS NOT NULL
        AND happened_after = happened_before AS is_exact,
    stored_at,
    CASE WHEN happened_after < stored_at THEN 0
        ELSE milliseconds_between(stored_at, happened_after) END AS latency_at_least_ms,
    CASE WHEN happened_before < stored_at THEN 0
        ELSE milliseconds_between(stored_at, happened_before) END AS latency_at_most_ms,
    ack_type, consumer_id, cause, transaction,
    CAST(shiftright(record_position, 32) AS INT) AS file_id,
    record_position & 4294967295 AS offset,
    CAST(shiftright(located, 32) AS INT) AS message_file_id
FROM acknowledgements
LEFT JOIN held
    ON acknowledgements.directory = held.directory AND acknowledgements.stored = held.stored
LEFT JOIN journals ON acknowledgements.directory = journals.directory
WHERE NOT is_of_streams(destination_kind, destination)
ORDER BY position, record_position
