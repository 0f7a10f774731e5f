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
votes AS (
    SELECT source AS broker_id, directory, count(*) AS messages
    FROM left_behind JOIN (
        SELECT DISTINCT directory, destination_kind, destination, message_id,
            coalesce(array_join(broker_path, chr(0)), '') AS way
        FROM placed WHERE kind = 'add'
    ) held
        ON left_behind.message_id = held.message_id
        AND left_behind.destination_kind = held.destination_kind
        AND left_behind.destination = held.destination AND before = way
    GROUP BY source, directory
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
