-- Every add and update that counts, and what it is: it `begins` the stay of a message, is a
-- `duplicate` of one that is there, `unwanted` on a topic without subscriptions, or it has `moved` a
-- message to where it lies.
WITH came AS (
    SELECT * FROM applied_operations WHERE kind IN ('add', 'update')
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
        WHEN stays.stored IS NOT NULL THEN 'begins'
        WHEN came.destination_kind LIKE '%topic' AND wanted.record_position IS NULL THEN 'unwanted'
        WHEN kind = 'update' THEN 'moved'
        ELSE 'duplicate'
    END AS arrival
FROM came
LEFT JOIN message_stays stays
    ON came.directory = stays.directory AND came.record_position = stays.stored
LEFT JOIN wanted
    ON came.directory = wanted.directory AND came.record_position = wanted.record_position
