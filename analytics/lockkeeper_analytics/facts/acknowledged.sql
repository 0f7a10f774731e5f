-- Every remove that acknowledges, with the ms since its message arrived (null: its file is gone).
-- The time of a remove lies between two bounds; `latency_ms` is from the likeliest between. What
-- removes a message that became a dead letter acknowledges nothing. Queues of streams are left out.
WITH steps AS (
    SELECT directory, destination_kind, destination, message_id, kind, subscription, consumer_id,
        ack_type, happened_at, happened_after, happened_before,
        min(CASE WHEN kind = 'add' THEN stored_at END) OVER message AS arrived_at,
        min(CASE WHEN kind = 'add' THEN shown_id END) OVER message AS stored_as
    FROM applied_operations
    WHERE kind IN ('add', 'remove') AND NOT is_of_streams(destination_kind, destination)
    WINDOW message AS (PARTITION BY message_id, directory, destination_kind, destination)
),
taken AS (
    SELECT directory, destination_kind, destination, message_id, subscription, consumer_id,
        ack_type, arrived_at, happened_at, happened_after, happened_before,
        unix_millis(arrived_at) AS arrived_ms,
        coalesce(stored_as, message_id) AS shown_as
    FROM steps WHERE kind = 'remove'
),
dead AS (
    SELECT directory, origin_kind, origin, shown_id
    FROM applied_operations WHERE kind = 'add' AND dead_letter_cause IS NOT NULL
)
SELECT directory, destination_kind, destination, message_id, subscription, consumer_id, ack_type,
    arrived_at, happened_at, happened_before,
    CASE WHEN unix_millis(happened_after) < arrived_ms THEN 0
        ELSE unix_millis(happened_after) - arrived_ms END AS earliest_ms,
    CASE WHEN unix_millis(happened_at) < arrived_ms THEN 0
        ELSE unix_millis(happened_at) - arrived_ms END AS latency_ms,
    CASE WHEN unix_millis(happened_before) < arrived_ms THEN 0
        ELSE unix_millis(happened_before) - arrived_ms END AS latest_ms
FROM taken ANTI JOIN dead
    ON taken.shown_as = dead.shown_id AND taken.directory = dead.directory
    AND taken.destination_kind = dead.origin_kind AND taken.destination = dead.origin
