-- Every message's stay in its queue, or with each durable subscription of its topic that was
-- there when it came: from its add to the end of it. `ended` is null while it waits, `located` is
-- where the record lies that holds it, `stored` the first one, `ender` what ended it, `hidden`
-- tells that a prepared transaction consumes it. What lies between two removes of a message in a
-- queue is one stay, a `turn`.
WITH purges AS (
    SELECT directory, destination_kind, destination, position,
        step(position, record_position, happened_at, kind) AS purge
    FROM effects WHERE kind = 'remove_destination'
),
-- What lies between two removals of a destination; behind the last one without an end.
periods AS (
    SELECT directory, destination_kind, destination,
        coalesce(lag(position) OVER (
            PARTITION BY directory, destination_kind, destination ORDER BY position), -1) AS begins,
        position AS purged, purge
    FROM purges
    UNION ALL
    SELECT directory, destination_kind, destination, max(position), NULL, NULL
    FROM purges GROUP BY directory, destination_kind, destination
),
told AS (
    SELECT /*+ BROADCAST(periods) */ effects.*, kind IN ('add', 'update') AS is_add,
        begins, purged, purge
    FROM effects LEFT JOIN periods
        ON effects.directory = periods.directory
        AND effects.destination_kind = periods.destination_kind
        AND effects.destination = periods.destination
        AND effects.position > begins AND (purged IS NULL OR effects.position < purged)
    WHERE kind IN ('add', 'update', 'remove', 'unmatched', 'prepared_remove')
),
turns AS (
    SELECT told.*,
        CASE WHEN destination_kind LIKE '%queue' THEN purged END AS period,
        count(CASE WHEN kind = 'remove' THEN 1 END) OVER (
            PARTITION BY directory, destination_kind, destination, message_id
            ORDER BY position, record_position
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
            - CASE WHEN kind = 'remove' THEN 1 ELSE 0 END AS turn
    FROM told WHERE is_add OR destination_kind LIKE '%queue' AND kind <> 'unmatched'
),
-- A stay begins with its first add; its latest update tells where the message lies since.
stays AS (
    SELECT directory, destination_kind, destination, message_id,
        min(CASE WHEN is_add THEN first_add(position, record_position, happened_at, producer_id,
            priority, group_id, transaction, record_bytes, stored_at, message_bytes,
            dead_letter_cause, begins, purge) END) AS first,
        max(CASE WHEN kind = 'update' THEN held_in(record_position, record_bytes, stored_at,
            message_bytes, dead_letter_cause) END) AS updated,
        min(CASE WHEN kind = 'remove'
            THEN step(position, record_position, happened_at, kind) END) AS removed,
        bool_or(kind = 'prepared_remove') AS hidden
    FROM turns
    GROUP BY directory, destination_kind, destination, message_id, turn, period
),
removes AS (
    SELECT directory, destination_kind, destination, message_id, subscription,
        min(CASE WHEN kind <> 'prepared_remove'
            THEN step(position, record_position, happened_at, kind) END) AS removed,
        bool_or(kind = 'prepared_remove') AS hidden
    FROM told WHERE destination_kind LIKE '%topic' AND NOT is_add
    GROUP BY directory, destination_kind, destination, message_id, subscription
),
ends AS (
    SELECT directory, destination_kind, destination, message_id,
        CAST(NULL AS STRING) AS subscription, first, updated, hidden,
        least(removed, first.purge) AS ending
    FROM stays WHERE destination_kind LIKE '%queue' AND first IS NOT NULL
    UNION ALL
    SELECT /*+ BROADCAST(subscribed) */ stays.directory, stays.destination_kind,
        stays.destination, stays.message_id, subscribed.subscription, first, updated,
        coalesce(removes.hidden, false), least(removes.removed, until, first.purge)
    FROM stays
    JOIN subscribed
        ON stays.directory = subscribed.directory
        AND stays.destination_kind = subscribed.destination_kind
        AND stays.destination = subscribed.destination
        AND first.position > since AND (until IS NULL OR first.position < until.position)
        -- Who removes a topic ends its subscriptions.
        AND (first.begins IS NULL OR first.begins < since)
    LEFT JOIN removes
        ON stays.directory = removes.directory
        AND stays.destination_kind = removes.destination_kind
        AND stays.destination = removes.destination
        AND stays.message_id = removes.message_id
        AND subscribed.subscription = removes.subscription
    WHERE stays.destination_kind LIKE '%topic'
)
SELECT directory, destination_kind, destination, message_id, subscription,
    first.position AS added, first.happened_at AS added_at,
    first.producer_id AS producer_id, first.priority AS priority, first.group_id AS group_id,
    first.transaction AS transaction,
    first.record_position AS stored,
    coalesce(updated.record_position, first.record_position) AS located,
    CASE WHEN updated IS NULL THEN first.record_bytes ELSE updated.record_bytes END
        AS record_bytes,
    CASE WHEN updated IS NULL THEN first.stored_at ELSE updated.stored_at END AS stored_at,
    CASE WHEN updated IS NULL THEN first.message_bytes ELSE updated.message_bytes END
        AS message_bytes,
    CASE WHEN updated IS NULL THEN first.dead_letter_cause ELSE updated.dead_letter_cause END
        AS dead_letter_cause,
    ending.position AS ended, ending.record_position AS ender,
    ending.happened_at AS ended_at, ending.kind AS end_kind,
    hidden
FROM ends
