-- The lives of the messages with these ids, each at one broker: by which bridge it came there, having
-- left the brokers on its `way`, by which it left, and whether it was left without a consumer.
WITH here AS (
    SELECT lives.*, coalesce(array_join(broker_path, chr(0)), '') AS way FROM {lives} lives
),
came AS (
    SELECT directory, destination_kind, destination, message_id, way,
        min(from_broker) AS from_broker, min(bridge) AS bridge
    FROM {ways} WHERE target IS NULL
    GROUP BY directory, destination_kind, destination, message_id, way
)
SELECT here.*, came.from_broker, came.bridge AS came_by, went.to_broker, went.bridge AS went_by,
    unattended.destination IS NOT NULL AND here.destination_kind LIKE '%queue'
        AND broker_path IS NOT NULL AS is_left
FROM here
LEFT JOIN came ON here.directory = came.directory AND here.message_id = came.message_id
    AND here.destination_kind = came.destination_kind AND here.destination = came.destination
    AND here.way = came.way
LEFT JOIN {departures} went
    ON here.directory = went.source_directory AND here.message_id = went.message_id
    AND here.destination_kind = went.destination_kind AND here.destination = went.destination
    AND here.way = went.before
LEFT JOIN {unattended} unattended ON here.directory = unattended.directory
    AND here.destination_kind = unattended.destination_kind
    AND here.destination = unattended.destination
