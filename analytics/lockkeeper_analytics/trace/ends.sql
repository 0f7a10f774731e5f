-- The ends of messages with these ids that the messages themselves do not tell: those for durable
-- subscriptions, and those of messages that are in no journal here.
SELECT told.* FROM {acks} told LEFT JOIN (
    SELECT DISTINCT directory, destination_kind, destination, message_id FROM {lives}
) there
    ON told.directory = there.directory AND told.destination_kind = there.destination_kind
    AND told.destination = there.destination AND told.message_id = there.message_id
WHERE told.message_id IN (SELECT id FROM {ids})
    AND (told.subscription IS NOT NULL OR there.message_id IS NULL)
