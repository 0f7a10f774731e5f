-- The messages with these ids, and their copies.
SELECT told.* FROM {messages} told
WHERE message_id IN (SELECT id FROM {ids}) OR copy_of IN (SELECT id FROM {ids})
