-- Every death of a message, by the add of its letter.
SELECT directory, destination_kind, destination, origin_kind, origin, shown_id, dead_letter_cause,
    redeliveries, happened_at, happened_before, position, record_position
FROM letters WHERE kind = 'add'
