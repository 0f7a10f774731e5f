-- Every record that holds a message with the cause of its death, at first or anew: it died, or
-- somebody moved a dead letter back or on, as ActiveMQ's console does, which leaves the cause as it
-- is. `is_moved` tells that this one came from where it was with the same cause before, or by its name
-- from a dead letter queue: the shared one, or one whose name has that of where it came to in it,
-- which is itself none by its name: letters die in DLQ.ORDERS, too, and go to DLQ.
WITH held AS (
    SELECT directory, destination_kind, destination, origin_kind, origin, shown_id, kind,
        dead_letter_cause, redeliveries, happened_at, happened_before, position, record_position,
        place_of(position, record_position) AS place
    FROM applied_operations
    WHERE kind IN ('add', 'update') AND dead_letter_cause IS NOT NULL
        AND NOT is_of_streams(destination_kind, destination)
),
arrived AS (
    SELECT directory, destination_kind, destination, shown_id, dead_letter_cause,
        min(place) AS since
    FROM held
    GROUP BY directory, destination_kind, destination, shown_id, dead_letter_cause
)
SELECT held.directory, held.destination_kind, held.destination, origin_kind, origin,
    held.shown_id, kind, held.dead_letter_cause, redeliveries, happened_at, happened_before,
    position, record_position,
    origin = 'ActiveMQ.DLQ' OR coalesce(since < place, false)
        OR origin <> held.destination
            AND contains('.' || origin || '.', '.' || held.destination || '.')
            AND NOT contains('.' || held.destination || '.', '.DLQ.') AS is_moved
FROM held LEFT JOIN arrived
    ON held.directory = arrived.directory AND origin_kind = arrived.destination_kind
    AND origin = arrived.destination AND held.shown_id = arrived.shown_id
    AND held.dead_letter_cause = arrived.dead_letter_cause
