-- The live durable subscriptions. `seen_at` is the last sign of life: made, acknowledged, or by the
-- flight recorder connected or gone; `connected` is null where no recorder tells. An hour without a
-- sign of life is late (slow): restarts and deployments take minutes. After a day, with messages
-- waiting, a subscriber has most likely been given up by everybody but the broker (stuck).
WITH waiting AS (
    SELECT directory, destination_kind, destination, subscription,
        count(*) AS pending, sum(message_bytes) AS bytes, min(stored_at) AS oldest_pending_at,
        count(DISTINCT shiftright(located, 32)) AS files
    FROM message_lifetimes WHERE ended IS NULL AND subscription IS NOT NULL AND NOT hidden
    GROUP BY directory, destination_kind, destination, subscription
),
acks AS (
    SELECT /*+ BROADCAST(live_subscriptions) */
        directory, destination_kind, destination, subscription, happened_after,
        row_number() OVER (
            PARTITION BY directory, destination_kind, destination, subscription
            ORDER BY position DESC, record_position DESC) AS number
    FROM applied_operations JOIN live_subscriptions
        USING (directory, destination_kind, destination, subscription)
    WHERE kind = 'remove' AND position > since
),
last_acks AS (
    SELECT directory, destination_kind, destination, subscription, happened_after AS last_ack_at
    FROM acks WHERE number = 1
),
presence AS (
    SELECT directory, client_id || ':' || subscription AS subscription,
        max(client_events.at) AS event_at,
        max_by(event, position) FILTER (WHERE event IS NOT NULL) AS event,
        max(position) AS position
    FROM client_events WHERE subscription IS NOT NULL AND event LIKE 'consumer%'
    GROUP BY directory, client_id || ':' || subscription
),
told AS (
    SELECT directory, destination_kind, destination, subscription,
        coalesce(pending, 0) AS pending, coalesce(bytes, 0) AS bytes, oldest_pending_at,
        last_ack_at, greatest(created_at, last_ack_at, event_at) AS seen_at,
        event = 'consumerOpened' AND position > coalesce(started, -1) AS connected,
        end_at, coalesce(files, 0) AS files
    FROM live_subscriptions
    LEFT JOIN waiting USING (directory, destination_kind, destination, subscription)
    LEFT JOIN last_acks USING (directory, destination_kind, destination, subscription)
    LEFT JOIN presence USING (directory, subscription)
    LEFT JOIN last_starts USING (directory)
    LEFT JOIN ends USING (directory)
),
aged AS (
    SELECT told.*, CASE WHEN connected THEN 0
        ELSE unix_millis(end_at) - unix_millis(seen_at) END AS absent_ms
    FROM told
)
SELECT directory, destination_kind, destination, subscription,
    CASE
        WHEN pending > 0 AND absent_ms >= 86400000 THEN 'stuck'
        WHEN pending > 0 AND absent_ms >= 3600000 THEN 'slow'
        ELSE 'ok'
    END AS verdict,
    pending, bytes, oldest_pending_at, last_ack_at, seen_at, connected, absent_ms, files
FROM aged
ORDER BY pending DESC, directory, destination_kind, destination, subscription
