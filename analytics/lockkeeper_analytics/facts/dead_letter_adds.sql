-- Every add of a message with the cause of its death: it died, or somebody moved a dead letter back
-- or on, as ActiveMQ's console does, which leaves the cause as it is. `is_moved` tells that this one
-- came from where it had come to with the same cause before, or from the shared dead letter queue.
WITH adds AS (
    SELECT directory, destination_kind, destination, origin_kind, origin, shown_id,
        dead_letter_cause, redeliveries, happened_at, happened_before, position, record_position,
        place_of(position, record_position) AS place
    FROM applied_operations
    WHERE kind = 'add' AND dead_letter_cause IS NOT NULL
        AND NOT is_of_streams(destination_kind, destination)
),
arrived AS (
    SELECT directory, destination_kind, destination, shown_id, dead_letter_cause,
        min(place) AS since
    FROM adds
    GROUP BY directory, destination_kind, destination, shown_id, dead_letter_cause
)
SELECT adds.directory, adds.destination_kind, adds.destination, origin_kind, origin,
    adds.shown_id, adds.dead_letter_cause, redeliveries, happened_at, happened_before,
    position, record_position,
    origin = 'ActiveMQ.DLQ' OR coalesce(since < place, false) AS is_moved
FROM adds LEFT JOIN arrived
    ON adds.directory = arrived.directory AND origin_kind = arrived.destination_kind
    AND origin = arrived.destination AND adds.shown_id = arrived.shown_id
    AND adds.dead_letter_cause = arrived.dead_letter_cause
