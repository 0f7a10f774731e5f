-- The ids of messages with an id or a correlation id, of their copies, and of those they are copies
-- of. A message of which only the end is known has one, too.
WITH found AS (
    SELECT message_id, copy_of FROM {messages}
    WHERE message_id = {id} OR copy_of = {id} OR correlation_id = {id}
    UNION ALL
    SELECT message_id, CAST(NULL AS STRING) FROM {acks} WHERE message_id = {id}
)
SELECT message_id AS id FROM found
UNION
SELECT copy_of FROM found WHERE copy_of IS NOT NULL
