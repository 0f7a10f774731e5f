-- Whose the ids in the paths of messages are. `directory` is the journal of that broker: its events
-- name the id; else it has the most messages of queues whose next broker was told this id. Null:
-- its journal is not given. `broker` is its name, null if nothing tells it.
WITH told AS (
    SELECT broker_id, min(directory) AS directory
    FROM events WHERE broker_id IS NOT NULL GROUP BY broker_id
),
peers AS (
    SELECT peer_id AS broker_id, min(peer) AS broker
    FROM events WHERE peer_id IS NOT NULL GROUP BY peer_id
),
ids AS (
    SELECT source AS broker_id FROM hops
    UNION
    SELECT target FROM hops WHERE target IS NOT NULL
    UNION
    SELECT broker_id FROM peers
),
unknown AS (
    SELECT ids.broker_id FROM ids ANTI JOIN told ON ids.broker_id = told.broker_id
),
-- A topic's messages are at several brokers with the same way behind them: they tell nothing.
left_behind AS (
    SELECT DISTINCT source, destination_kind, destination, message_id, before
    FROM hops WHERE destination_kind LIKE '%queue' AND source IN (SELECT broker_id FROM unknown)
),
held AS (
    SELECT DISTINCT source AS broker_id, placed.directory, left_behind.destination_kind,
        left_behind.destination, left_behind.message_id, before
    FROM placed JOIN left_behind
        ON placed.message_id = left_behind.message_id
        AND placed.destination_kind = left_behind.destination_kind
        AND placed.destination = left_behind.destination
        AND coalesce(array_join(broker_path, chr(0)), '') = before
    WHERE kind = 'add'
),
votes AS (
    SELECT broker_id, directory, count(*) AS messages FROM held GROUP BY broker_id, directory
),
elected AS (
    SELECT broker_id, min(directory) AS directory
    FROM votes JOIN (
        SELECT broker_id, max(messages) AS messages FROM votes GROUP BY broker_id
    ) most USING (broker_id, messages)
    GROUP BY broker_id HAVING count(*) = 1
),
found AS (
    SELECT broker_id, directory FROM told
    UNION ALL
    SELECT broker_id, directory FROM elected
)
SELECT ids.broker_id, found.directory, coalesce(broker_names.broker, peers.broker) AS broker
FROM (SELECT broker_id FROM ids UNION SELECT broker_id FROM told) ids
LEFT JOIN found ON ids.broker_id = found.broker_id
LEFT JOIN broker_names ON found.directory = broker_names.directory
LEFT JOIN peers ON ids.broker_id = peers.broker_id
