-- The ids of messages with an id or a correlation id, of their copies, of those they are copies of,
-- and of their retries. A message of which only the end is known has one, too.
WITH found AS (
    SELECT message_id, copy_of, retry_of FROM {messages}
    WHERE message_id = {id} OR copy_of = {id} OR correlation_id = {id} OR retry_of = {id}
    UNION ALL
    SELECT message_id, CAST(NULL AS STRING), CAST(NULL AS STRING) FROM {acks}
    WHERE message_id = {id}
),
-- All retries of a message, however often it died, have its first id.
first_ids AS (
    SELECT DISTINCT coalesce(retry_of, copy_of, message_id) AS id FROM found
)
SELECT message_id AS id FROM found
UNION
SELECT copy_of FROM found WHERE copy_of IS NOT NULL
UNION
SELECT id FROM first_ids
UNION
SELECT message_id FROM {messages} WHERE retry_of IN (SELECT id FROM first_ids)
