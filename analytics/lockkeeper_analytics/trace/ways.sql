-- The bridges that messages with these ids have crossed: from which broker to which, by name, and
-- by what either of them tells, how the bridge is called.
WITH crossed AS (
    SELECT hops.directory, destination_kind, destination, message_id, source, target, before, way,
        stored_at, left_one.directory AS source_directory,
        coalesce(left_one.broker, source) AS from_broker,
        CASE WHEN target IS NULL THEN hops.directory ELSE next_one.directory END
            AS target_directory,
        CASE WHEN target IS NULL THEN here.broker ELSE coalesce(next_one.broker, target) END
            AS to_broker
    FROM {hops} hops
    LEFT JOIN {broker_ids} left_one ON source = left_one.broker_id
    LEFT JOIN {broker_ids} next_one ON target = next_one.broker_id
    LEFT JOIN {broker_names} here ON hops.directory = here.directory
    WHERE message_id IN (SELECT id FROM {ids})
),
named AS (
    SELECT peers.broker AS from_broker, here.broker AS to_broker, bridge
    FROM {bridges} bridges JOIN {broker_ids} peers ON peer_id = peers.broker_id
    JOIN {broker_names} here ON bridges.directory = here.directory
    WHERE direction <> 'out'
    UNION
    SELECT here.broker, peers.broker, bridge
    FROM {bridges} bridges JOIN {broker_ids} peers ON peer_id = peers.broker_id
    JOIN {broker_names} here ON bridges.directory = here.directory
    WHERE direction <> 'in'
),
called AS (
    SELECT from_broker, to_broker, array_join(array_sort(array_agg(DISTINCT bridge)), ', ') AS bridge
    FROM named GROUP BY from_broker, to_broker
)
SELECT crossed.*, bridge
FROM crossed LEFT JOIN called
    ON crossed.from_broker = called.from_broker AND crossed.to_broker = called.to_broker
