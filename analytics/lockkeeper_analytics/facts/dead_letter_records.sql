-- Every record that holds a message with the cause of its death, at first or anew: it died, or
-- somebody moved a dead letter back or on, as ActiveMQ's console does, which leaves the cause as it
-- is. `is_moved` tells that this one came from where it was with the same cause before, or from the
-- shared dead letter queue. Where no record tells that it was there, names decide: it came from a
-- dead letter queue whose name has that of where it came to in it, which is itself none by its name:
-- letters die in DLQ.ORDERS, too, and go to DLQ. A queue to which more of other messages came than
-- letters is no dead letter queue by any name: those of SHOP.FAILED may die into FAILED.
WITH held AS (
    SELECT directory, destination_kind, destination, origin_kind, origin, shown_id, kind,
        dead_letter_cause, redeliveries, happened_at, happened_before, position, record_position,
        place_of(position, record_position) AS place,
        origin <> destination AND contains('.' || origin || '.', '.' || destination || '.')
            AND NOT contains('.' || destination || '.', '.DLQ.') AS is_named_so
    FROM applied_operations
    WHERE kind IN ('add', 'update') AND dead_letter_cause IS NOT NULL
        AND NOT is_of_streams(destination_kind, destination)
),
arrived AS (
    SELECT directory, destination_kind, destination, shown_id, dead_letter_cause,
        min(place) AS since
    FROM held
    GROUP BY directory, destination_kind, destination, shown_id, dead_letter_cause
),
named AS (
    SELECT DISTINCT directory, origin_kind, origin FROM held WHERE is_named_so
),
came AS (
    SELECT told.directory, destination_kind, destination, shown_id, dead_letter_cause,
        place_of(position, record_position) AS place
    FROM applied_operations told SEMI JOIN named
        ON told.directory = named.directory AND destination_kind = named.origin_kind
        AND destination = named.origin
    WHERE kind IN ('add', 'update')
),
known AS (
    SELECT directory, destination_kind, destination, shown_id, min(place) AS since
    FROM came GROUP BY directory, destination_kind, destination, shown_id
),
ordinary AS (
    SELECT directory, destination_kind, destination
    FROM came GROUP BY directory, destination_kind, destination
    HAVING 2 * count(dead_letter_cause) < count(*)
)
SELECT held.directory, held.destination_kind, held.destination, origin_kind, origin,
    held.shown_id, kind, held.dead_letter_cause, redeliveries, happened_at, happened_before,
    position, record_position,
    origin = 'ActiveMQ.DLQ' OR coalesce(arrived.since < place, false)
        OR is_named_so AND NOT coalesce(known.since < place, false)
            AND ordinary.destination IS NULL AS is_moved
FROM held
LEFT JOIN arrived
    ON held.directory = arrived.directory AND origin_kind = arrived.destination_kind
    AND origin = arrived.destination AND held.shown_id = arrived.shown_id
    AND held.dead_letter_cause = arrived.dead_letter_cause
LEFT JOIN known
    ON held.directory = known.directory AND origin_kind = known.destination_kind
    AND origin = known.destination AND held.shown_id = known.shown_id
LEFT JOIN ordinary
    ON held.directory = ordinary.directory AND origin_kind = ordinary.destination_kind
    AND origin = ordinary.destination
