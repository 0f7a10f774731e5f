-- One row for each message, but for those of streams. What it says itself is read where it lies now.
SELECT message_rows.directory, journals.broker, message_rows.destination_kind, message_rows.destination,
    message_rows.message_id, message_rows.copy_of, outcome, message_rows.stored_at,
    happened_after AS added_earliest, happened_before AS added_latest,
    ended_after AS ended_earliest, ended_before AS ended_latest,
    CASE WHEN ended_after < message_rows.stored_at THEN 0
        ELSE milliseconds_between(message_rows.stored_at, ended_after) END AS life_at_least_ms,
    CASE WHEN ended_before < message_rows.stored_at THEN 0
        ELSE milliseconds_between(message_rows.stored_at, ended_before) END AS life_at_most_ms,
    last.consumer_id AS consumer_id, acknowledged_by, waiting_for, dead_letter_destination,
    last.cause AS end_cause, message_rows.original_destination, message_rows.dead_letter_cause,
    message_rows.transaction, last.transaction AS end_transaction, message_rows.message_bytes,
    CAST(shiftright(located, 32) AS INT) AS file_id, located & 4294967295 AS offset,
    message_rows.record_bytes,
    message_type, said.producer_id, persistent, said.priority, sent_at, expires_at,
    correlation_id, said.group_id, group_sequence, reply_to, jms_type, said.redeliveries, user_id,
    compressed, properties, retry_of, broker_path
FROM message_rows
LEFT JOIN (SELECT * FROM placed WHERE kind IN ('add', 'update')) said
    ON message_rows.directory = said.directory AND located = said.position
LEFT JOIN journals ON message_rows.directory = journals.directory
WHERE NOT is_of_streams(message_rows.destination_kind, message_rows.destination)
ORDER BY ended NULLS LAST, ender, message_rows.position, message_rows.record_position
