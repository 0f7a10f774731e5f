-- Every message's stay in its queue, or with each durable subscription of its topic that was
-- there when it came, or asked for what was there already: from its add to the end of it. `ended`
-- is null while it waits, `located` is where the record lies that holds it, `stored` the first
-- one, with its time `arrived_at`; `ender` what ended it, `hidden` tells that a prepared transaction
-- consumes it.
WITH told AS (
    SELECT /*+ BROADCAST(periods) */ applied.directory, applied.destination_kind,
        applied.destination, message_id, copy_of, subscription, kind, kind IN ('add', 'update') AS is_add,
        position, record_position, happened_at, happened_after, happened_before,
        priority, group_id, record_bytes, stored_at, message_bytes, dead_letter_cause,
        purged, purge
    FROM applied_operations applied LEFT JOIN periods
        ON applied.directory = periods.directory
        AND applied.destination_kind = periods.destination_kind
        AND applied.destination = periods.destination
        AND applied.position > begins AND (purged IS NULL OR applied.position < purged)
    WHERE kind IN ('add', 'update', 'remove', 'unmatched')
),
-- Of a queue, the first add and the first remove after it; what lies between changes nothing.
flips AS (
    SELECT told.*, coalesce(lag(is_add) OVER steps, false) <> is_add AS is_flip
    FROM told WHERE destination_kind LIKE '%queue'
    WINDOW steps AS (
        PARTITION BY directory, destination_kind, destination, message_id, purged
        ORDER BY position, record_position
    )
),
turns AS (
    SELECT flips.*, lead(position) OVER steps AS next, lead(record_position) OVER steps AS next_record,
        lead(happened_at) OVER steps AS next_at, lead(happened_after) OVER steps AS next_after,
        lead(happened_before) OVER steps AS next_before
    FROM flips WHERE is_flip
    WINDOW steps AS (
        PARTITION BY directory, destination_kind, destination, message_id, purged
        ORDER BY position, record_position
    )
),
-- Of a topic, what an add would be the beginning of if it is none of a message that is there. A
-- subscription waits from the add on, or from when it was made if it is retroactive.
wanted AS (
    SELECT /*+ BROADCAST(subscribed) */ told.directory, told.destination_kind, told.destination,
        message_id, subscribed.subscription, position, record_position, until,
        CASE WHEN since > position THEN since ELSE position END AS begins,
        CASE WHEN since > position THEN since ELSE record_position END AS record_begins
    FROM told JOIN subscribed
        ON told.directory = subscribed.directory
        AND told.destination_kind = subscribed.destination_kind
        AND told.destination = subscribed.destination
        AND (until IS NULL OR position < until.position)
        AND (position > since OR retroactive AND (purged IS NULL OR since < purged))
    WHERE is_add AND told.destination_kind LIKE '%topic'
),
removes AS (
    SELECT directory, destination_kind, destination, message_id, subscription,
        step(position, record_position, happened_at, happened_after, happened_before, kind)
            AS happened
    FROM told
    WHERE NOT is_add AND destination_kind LIKE '%topic' AND subscription IS NOT NULL
    UNION ALL
    -- One that names no subscription is of all.
    SELECT told.directory, told.destination_kind, told.destination, message_id,
        subscribed.subscription,
        step(position, record_position, happened_at, happened_after, happened_before, kind)
    FROM told JOIN subscribed
        ON told.directory = subscribed.directory
        AND told.destination_kind = subscribed.destination_kind
        AND told.destination = subscribed.destination
        AND position > since AND (until IS NULL OR position < until.position)
    WHERE NOT is_add AND told.destination_kind LIKE '%topic' AND told.subscription IS NULL
),
met AS (
    SELECT wanted.directory, wanted.destination_kind, wanted.destination, wanted.message_id,
        wanted.subscription, position, record_position, begins, until, min(happened) AS removed
    FROM wanted LEFT JOIN removes
        ON wanted.directory = removes.directory
        AND wanted.destination_kind = removes.destination_kind
        AND wanted.destination = removes.destination
        AND wanted.message_id = removes.message_id
        AND wanted.subscription = removes.subscription
        AND (happened.position > begins
            OR happened.position = begins AND happened.record_position > record_begins)
    GROUP BY ALL
),
ended AS (
    SELECT met.*, least(until, removed) AS ending FROM met
),
-- A message stays while somebody waits for it: who comes after that finds nothing.
followed_by AS (
    SELECT ended.*,
        max(coalesce(ending.position, 9223372036854775807)) OVER earlier AS latest,
        min(begins) OVER (PARTITION BY directory, record_position) = position AS is_wanted
    FROM ended
    WINDOW earlier AS (
        PARTITION BY directory, record_position ORDER BY begins, subscription
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),
joined AS (
    SELECT followed_by.*,
        count(CASE WHEN begins > latest THEN 1 END) OVER (
            PARTITION BY directory, record_position ORDER BY begins, subscription
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS gaps
    FROM followed_by WHERE is_wanted
),
possible AS (
    SELECT directory, destination_kind, destination, message_id, position, record_position,
        CASE WHEN count(*) = count(ending.position) THEN max(ending) END AS ending
    FROM joined WHERE gaps = 0
    GROUP BY directory, destination_kind, destination, message_id, position, record_position
),
-- The first add of a message begins a stay, then the first one after the end of that, and so on.
numbered AS (
    SELECT possible.*, count(*) OVER (
            PARTITION BY directory, destination_kind, destination, message_id) AS adds,
        row_number() OVER (
            PARTITION BY directory, destination_kind, destination, message_id
            ORDER BY position, record_position) AS number
    FROM possible
),
links AS (
    SELECT one.directory, one.destination_kind, one.destination, one.message_id, one.number,
        1 + count(CASE WHEN one.ending IS NULL OR other.position < one.ending.position
            OR other.position = one.ending.position
            AND other.record_position < one.ending.record_position THEN 1 END) AS next
    FROM (SELECT * FROM numbered WHERE adds > 1) one
    JOIN (SELECT * FROM numbered WHERE adds > 1) other
        ON one.directory = other.directory AND one.destination_kind = other.destination_kind
        AND one.destination = other.destination AND one.message_id = other.message_id
    GROUP BY one.directory, one.destination_kind, one.destination, one.message_id, one.number
),
chains AS (
    SELECT directory, destination_kind, destination, message_id, number,
        array_agg(next) OVER (
            PARTITION BY directory, destination_kind, destination, message_id ORDER BY number
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS nexts
    FROM links
),
begun AS (
    SELECT directory, destination_kind, destination, message_id, explode(followed(nexts)) AS number
    FROM chains WHERE number = 1
),
begun_at AS (
    SELECT numbered.directory, numbered.record_position, numbered.ending.position AS over
    FROM numbered LEFT JOIN begun
        ON numbered.directory = begun.directory
        AND numbered.destination_kind = begun.destination_kind
        AND numbered.destination = begun.destination
        AND numbered.message_id = begun.message_id AND numbered.number = begun.number
    WHERE adds = 1 OR begun.number IS NOT NULL
),
stays AS (
    SELECT directory, destination_kind, destination, message_id, copy_of,
        CAST(NULL AS STRING) AS subscription, position, record_position, happened_at,
        priority, group_id, record_bytes, stored_at, message_bytes, dead_letter_cause,
        coalesce(next, purged) AS over,
        coalesce(next, purged) AS ended, coalesce(next_record, purged) AS ender,
        CASE WHEN next IS NULL THEN purge.happened_at ELSE next_at END AS ended_at,
        CASE WHEN next IS NULL THEN purge.happened_after ELSE next_after END AS ended_after,
        CASE WHEN next IS NULL THEN purge.happened_before ELSE next_before END AS ended_before,
        CASE WHEN next IS NULL THEN purge.kind ELSE 'remove' END AS end_kind
    FROM turns WHERE is_add
    UNION ALL
    SELECT told.directory, told.destination_kind, told.destination, told.message_id, told.copy_of,
        joined.subscription, told.position, told.record_position, told.happened_at,
        priority, group_id, record_bytes, stored_at, message_bytes, dead_letter_cause, over,
        ending.position, ending.record_position, ending.happened_at, ending.happened_after,
        ending.happened_before, ending.kind
    FROM begun_at
    JOIN joined
        ON begun_at.directory = joined.directory
        AND begun_at.record_position = joined.record_position
    JOIN told
        ON begun_at.directory = told.directory
        AND begun_at.record_position = told.record_position
    WHERE gaps = 0
)
SELECT stays.directory, stays.destination_kind, stays.destination, stays.message_id,
    stays.copy_of, stays.subscription, stays.position AS added, stays.happened_at AS added_at,
    stays.stored_at AS arrived_at,
    priority, group_id, stays.record_position AS stored,
    -- The latest update of the stay tells where the message lies since.
    coalesce(updates.position, stays.record_position) AS located,
    CASE WHEN updates.position IS NULL THEN stays.record_bytes ELSE updates.record_bytes END
        AS record_bytes,
    CASE WHEN updates.position IS NULL THEN stays.stored_at ELSE updates.stored_at END
        AS stored_at,
    CASE WHEN updates.position IS NULL THEN stays.message_bytes ELSE updates.message_bytes END
        AS message_bytes,
    CASE WHEN updates.position IS NULL THEN stays.dead_letter_cause
        ELSE updates.dead_letter_cause END AS dead_letter_cause,
    ended, ender, ended_at, ended_after, ended_before, end_kind,
    ended IS NULL AND coalesce(stays.subscription IS NULL
        OR array_contains(consumers, stays.subscription) OR array_contains(consumers, ''), false)
        AND consumers IS NOT NULL AS hidden
FROM stays
LEFT JOIN updates
    ON stays.directory = updates.directory
    AND stays.destination_kind = updates.destination_kind
    AND stays.destination = updates.destination AND stays.message_id = updates.message_id
    AND updates.position >= stays.position AND (over IS NULL OR updates.position < over)
    AND (next IS NULL OR next > over)
LEFT JOIN prepared_removes prepared
    ON stays.directory = prepared.directory
    AND stays.destination_kind = prepared.destination_kind
    AND stays.destination = prepared.destination AND stays.message_id = prepared.message_id
