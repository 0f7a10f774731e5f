-- The durable subscriptions that nothing ended, the removal of their topic neither.
SELECT subscribed.directory, subscribed.destination_kind, subscribed.destination, subscription,
    since, created_at
FROM subscribed
LEFT JOIN (
    SELECT directory, destination_kind, destination, max(position) AS purged
    FROM effects WHERE kind = 'remove_destination' GROUP BY ALL
) purges USING (directory, destination_kind, destination)
WHERE subscribed.destination_kind LIKE '%topic' AND until IS NULL AND since > coalesce(purged, -1)
