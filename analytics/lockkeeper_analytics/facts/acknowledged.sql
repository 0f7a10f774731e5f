-- Every remove that acknowledges, with the ms since its message arrived (null: nothing tells when;
-- without `has_add` the file of its arrival is gone).
-- The time of a remove lies between two bounds; `latency_ms` is from the likeliest between. What
-- removes a message that became a dead letter acknowledges nothing. Queues of streams are left out.
WITH arrived AS (
    SELECT directory, destination_kind, destination, message_id, min(stored_at) AS arrived_at,
        min(shown_id) AS stored_as
    FROM applied_operations WHERE kind = 'add' GROUP BY ALL
),
taken AS (
    SELECT directory, destination_kind, destination, message_id, subscription, consumer_id,
        ack_type, arrived_at, happened_at, happened_after, happened_before,
        unix_millis(arrived_at) AS arrived_ms,
        stored_as IS NOT NULL AS has_add, coalesce(stored_as, message_id) AS shown_as
    FROM (
        SELECT * FROM applied_operations
        WHERE kind = 'remove' AND NOT is_of_streams(destination_kind, destination)
    ) removes
    LEFT JOIN arrived USING (directory, destination_kind, destination, message_id)
),
dead AS (
    SELECT directory, origin_kind, origin, shown_id
    FROM applied_operations WHERE kind = 'add' AND dead_letter_cause IS NOT NULL
)
SELECT directory, destination_kind, destination, message_id, subscription, consumer_id, ack_type,
    has_add, arrived_at, happened_at, happened_before,
    CASE WHEN unix_millis(happened_after) < arrived_ms THEN 0
        ELSE unix_millis(happened_after) - arrived_ms END AS earliest_ms,
    CASE WHEN unix_millis(happened_at) < arrived_ms THEN 0
        ELSE unix_millis(happened_at) - arrived_ms END AS latency_ms,
    CASE WHEN unix_millis(happened_before) < arrived_ms THEN 0
        ELSE unix_millis(happened_before) - arrived_ms END AS latest_ms
FROM taken ANTI JOIN dead
    ON taken.directory = dead.directory AND taken.destination_kind = dead.origin_kind
    AND taken.destination = dead.origin AND taken.shown_as = dead.shown_id
