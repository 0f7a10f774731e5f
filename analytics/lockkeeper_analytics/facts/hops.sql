-- Ways of messages from broker to broker, one row for each bridge that one crossed: it left
-- `source` and came to `target`, ids of brokers; null: to the journal's own. `way` are the ids of
-- all brokers that it had left then, `before` those without `source`; `stored_at` is when the
-- journal's broker got it, be it there or further on its way.
WITH came AS (
    SELECT directory, destination_kind, destination, message_id, original_destination, stored_at,
        broker_path, array_join(broker_path, chr(0)) AS way, position
    FROM placed WHERE kind = 'add' AND broker_path IS NOT NULL
),
-- What a broker has moved, to a dead letter queue above all, has crossed no bridge again.
moved AS (
    SELECT DISTINCT came.directory, came.position
    FROM came JOIN came earlier
        ON came.directory = earlier.directory AND came.message_id = earlier.message_id
        AND came.way = earlier.way
        AND came.original_destination = earlier.destination_kind || '://' || earlier.destination
),
-- Spark takes no function written in SQL right within `explode`.
crossed AS (
    SELECT came.directory, destination_kind, destination, message_id, stored_at,
        hops_of(broker_path) AS hops
    FROM came ANTI JOIN moved
        ON came.directory = moved.directory AND came.position = moved.position
),
apart AS (
    SELECT directory, destination_kind, destination, message_id, stored_at, explode(hops) AS hop
    FROM crossed
)
SELECT directory, destination_kind, destination, message_id, hop.source AS source,
    hop.target AS target, hop.before AS before, hop.way AS way, stored_at
FROM apart
