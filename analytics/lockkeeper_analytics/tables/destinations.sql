-- One row for each destination that a record which counts names, but for queues of streams.
WITH named AS (
    SELECT directory, destination_kind, destination, min(place_of(position, record_position)) AS first,
        coalesce(max(CASE WHEN kind = 'remove_destination' THEN position END)
            > coalesce(max(CASE WHEN kind IN ('add', 'update') THEN position END), -1), false)
            AS is_removed
    FROM applied_operations WHERE kind <> 'unsubscribe' AND NOT is_of_streams(destination_kind, destination)
    GROUP BY directory, destination_kind, destination
),
stored AS (
    SELECT directory, destination_kind, destination, count(*) AS stored,
        sum(message_bytes) AS stored_bytes,
        min(dated(position, record_position, stored_at)) FILTER (WHERE stored_at IS NOT NULL)
            AS first_stored,
        max(dated(position, record_position, stored_at)) FILTER (WHERE stored_at IS NOT NULL)
            AS last_stored
    FROM arrivals WHERE arrival IN ('begins', 'unwanted')
    GROUP BY directory, destination_kind, destination
),
counts AS (
    SELECT directory, destination_kind, destination,
        count_if(outcome = 'acknowledged') AS acknowledged,
        count_if(outcome = 'dead_lettered') AS dead_lettered,
        count_if(outcome = 'expired') AS expired,
        count_if(outcome = 'dropped') AS dropped,
        count_if(outcome = 'unmatched') AS unmatched,
        count_if(outcome = 'unwanted') AS unwanted,
        count_if(outcome = 'duplicate') AS duplicate,
        count_if(outcome = 'pending') AS pending,
        sum(CASE WHEN outcome = 'pending' THEN message_bytes END) AS pending_bytes,
        min(dated(position, record_position, stored_at)) FILTER (WHERE outcome = 'pending')
            AS oldest,
        -- What a prepared transaction adds is not there yet.
        count_if(outcome = 'in_doubt' AND stored IS NOT NULL) AS in_doubt
    FROM message_rows GROUP BY directory, destination_kind, destination
),
alive AS (
    SELECT directory, destination_kind, destination, count(*) AS subscriptions
    FROM subscribed WHERE until IS NULL GROUP BY directory, destination_kind, destination
)
SELECT directory, journals.broker, destination_kind, destination, is_removed,
    coalesce(stored, 0) AS stored, CAST(coalesce(stored_bytes, 0) AS BIGINT) AS stored_bytes,
    first_stored.moment AS first_stored_at, last_stored.moment AS last_stored_at,
    coalesce(acknowledged, 0) AS acknowledged, coalesce(dead_lettered, 0) AS dead_lettered,
    coalesce(expired, 0) AS expired, coalesce(dropped, 0) AS dropped,
    coalesce(unmatched, 0) AS unmatched, coalesce(unwanted, 0) AS unwanted,
    coalesce(duplicate, 0) AS duplicate, coalesce(pending, 0) AS pending,
    CAST(coalesce(pending_bytes, 0) AS BIGINT) AS pending_bytes,
    oldest.moment AS oldest_pending_at, coalesce(in_doubt, 0) AS in_doubt,
    coalesce(subscriptions, 0) AS subscriptions
FROM named
LEFT JOIN stored USING (directory, destination_kind, destination)
LEFT JOIN counts USING (directory, destination_kind, destination)
LEFT JOIN alive USING (directory, destination_kind, destination)
LEFT JOIN journals USING (directory)
ORDER BY first, destination_kind, destination
