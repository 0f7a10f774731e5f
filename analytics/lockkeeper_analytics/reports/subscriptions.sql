-- An hour without a sign of life is late (slow); after a day, with messages waiting, a subscriber
-- has most likely been given up (stuck).
WITH presence AS (
    SELECT directory, client_id || ':' || subscription AS subscription,
        max("at") AS event_at,
        arg_max(event, (file_id, "offset")) AS event,
        max((file_id, "offset")) AS place
    FROM events WHERE subscription IS NOT NULL AND event LIKE 'consumer%' GROUP BY ALL
),
starts AS (
    SELECT directory, max((file_id, "offset")) AS started
    FROM events WHERE event IN ('start', 'takeover') GROUP BY ALL
),
kept AS (
    SELECT directory, destination_kind, destination, subscription,
        count(DISTINCT file_id) AS files
    FROM (SELECT *, unnest(waiting_for) AS subscription FROM messages)
    GROUP BY ALL
),
told AS (
    SELECT subscriptions.*, end_at,
        event = 'consumerOpened' AND (started IS NULL OR place > started) AS connected,
        greatest(created_earliest, last_ack_earliest, event_at) AS seen_at,
        if(coalesce(connected, false), 0, epoch_ms(end_at) - epoch_ms(seen_at)) AS absent_ms
    FROM subscriptions
    LEFT JOIN presence USING (directory, subscription)
    LEFT JOIN starts USING (directory)
    LEFT JOIN ends USING (directory)
    WHERE state = 'live'
)
SELECT directory, destination_kind, destination, subscription,
    CASE
        WHEN pending > 0 AND absent_ms >= 86400000 THEN 'stuck'
        WHEN pending > 0 AND absent_ms >= 3600000 THEN 'slow'
        ELSE 'ok'
    END AS verdict,
    pending,
    coalesce(pending_bytes, 0) AS bytes,
    oldest_pending_at,
    last_ack_earliest AS last_ack_at,
    seen_at, connected, absent_ms,
    coalesce(files, 0) AS files
FROM told LEFT JOIN kept USING (directory, destination_kind, destination, subscription)
ORDER BY pending DESC, directory, destination_kind, destination, subscription
