-- Every add and update that begins no stay of a message: it is a `duplicate` of one that is there,
-- `unwanted` on a topic without subscriptions, or it has `moved` a message to where it lies.
WITH came AS (
    SELECT applied.* FROM applied_operations applied ANTI JOIN message_lifetimes lives
        ON applied.directory = lives.directory AND record_position = stored
    WHERE kind IN ('add', 'update')
),
wanted AS (
    SELECT /*+ BROADCAST(subscribed) */ DISTINCT came.directory, record_position
    FROM came JOIN subscribed
        ON came.directory = subscribed.directory
        AND came.destination_kind = subscribed.destination_kind
        AND came.destination = subscribed.destination
        AND position > since AND (until IS NULL OR position < until.position)
    WHERE came.destination_kind LIKE '%topic'
)
SELECT came.*,
    CASE
        WHEN came.destination_kind LIKE '%topic' AND wanted.record_position IS NULL THEN 'unwanted'
        WHEN kind = 'update' THEN 'moved'
        ELSE 'duplicate'
    END AS arrival
FROM came
LEFT JOIN wanted
    ON came.directory = wanted.directory AND came.record_position = wanted.record_position
