-- Durable subscriptions from `since` on, where they were made, `until` they ended (null: not yet).
-- One that is made again begins anew; one to a wildcard has a row for each topic. That its topic
-- was removed is not looked at.
SELECT directory, destination_kind, destination, subscription, since, created_at, until
FROM (
    SELECT directory, destination_kind, destination, subscription, kind,
        position AS since, happened_after AS created_at,
        lead(step(position, record_position, happened_at, 'unsubscribe')) OVER (
            PARTITION BY directory, destination_kind, destination, subscription
            ORDER BY position) AS until
    FROM effects
    WHERE kind IN ('subscribe', 'unsubscribe')
) changes
WHERE kind = 'subscribe'
