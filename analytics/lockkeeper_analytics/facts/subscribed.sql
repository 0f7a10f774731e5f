-- Durable subscriptions from `since` on, where they were made, `until` they ended (null: not yet):
-- they were deleted, made again, or their topic was removed. One that is made again begins anew;
-- one to a wildcard has a row for each topic.
WITH changes AS (
    SELECT directory, destination_kind, destination, subscription, kind, retroactive,
        position AS since, happened_after AS created_at, happened_before AS created_before,
        lead(step(position, record_position, happened_at, happened_after, happened_before, kind))
            OVER (
                PARTITION BY directory, destination_kind, destination, subscription
                ORDER BY position) AS next
    FROM applied_operations
    WHERE kind IN ('subscribe', 'unsubscribe')
)
SELECT changes.directory, changes.destination_kind, changes.destination, subscription,
    coalesce(retroactive, false) AS retroactive, since, created_at, created_before,
    least(next, purge) AS until
FROM changes
LEFT JOIN periods
    ON changes.directory = periods.directory
    AND changes.destination_kind = periods.destination_kind
    AND changes.destination = periods.destination
    AND since > begins AND since < purged
WHERE kind = 'subscribe'
