-- Messages that prepared transactions consume, for which subscriptions: '' where none is named.
SELECT directory, destination_kind, destination, message_id,
    array_agg(coalesce(subscription, '')) AS consumers
FROM applied_operations WHERE kind = 'prepared_remove'
GROUP BY directory, destination_kind, destination, message_id
