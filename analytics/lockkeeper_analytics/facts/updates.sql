-- Records that hold a message anew, each with where the `next` one of the same message is.
SELECT directory, destination_kind, destination, message_id, position, record_bytes,
    stored_at, message_bytes, dead_letter_cause,
    lead(position) OVER (
        PARTITION BY directory, destination_kind, destination, message_id
        ORDER BY position) AS next
FROM applied_operations WHERE kind = 'update'
