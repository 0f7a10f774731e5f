-- The durable subscriptions that nothing ended.
SELECT directory, destination_kind, destination, subscription, since, created_at
FROM subscribed
WHERE destination_kind LIKE '%topic' AND until IS NULL
