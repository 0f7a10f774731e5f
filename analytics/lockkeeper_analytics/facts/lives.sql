-- Every message's stay in its queue, or with each durable subscription of its topic that was
-- there when it came: from its add to the end of it. `ended` is null while it waits, `located` is
-- where the record lies that holds it, `stored` the first one, `ender` what ended it, `hidden`
-- tells that a prepared transaction consumes it.
WITH purges AS (
    SELECT directory, destination_kind, destination,
        list({'position': position, 'record_position': record_position,
            'happened_at': happened_at, 'kind': kind} ORDER BY position) AS purges
    FROM effects WHERE kind = 'remove_destination' GROUP BY ALL
),
told AS (
    SELECT effects.*, purges,
        {'position': position, 'record_position': record_position,
            'happened_at': happened_at, 'kind': kind} AS step,
        kind IN ('add', 'update') AS is_add
    FROM effects LEFT JOIN purges USING (directory, destination_kind, destination)
    WHERE kind IN ('add', 'update', 'remove', 'unmatched', 'prepared_remove')
),
-- What lies between two removes of a message in a queue is one stay.
turns AS (
    SELECT *,
        coalesce(len(list_filter(purges, lambda purge: purge.position < position)), 0)
            + count(*) FILTER (kind = 'remove') OVER (
                PARTITION BY directory, destination_kind, destination, message_id
                ORDER BY position, record_position ROWS UNBOUNDED PRECEDING)
            - (kind = 'remove')::INT AS turn
    FROM told WHERE destination_kind LIKE '%queue'
),
in_queues AS (
    SELECT directory, destination_kind, destination, message_id, NULL::VARCHAR AS subscription,
        arg_min(turns, (position, record_position)) FILTER (is_add) AS first,
        arg_max(turns, record_position) FILTER (kind = 'update') AS updated,
        any_value(purges) AS purges,
        min(step) FILTER (kind = 'remove') AS removed,
        bool_or(kind = 'prepared_remove') AS hidden,
        NULL AS until
    FROM turns GROUP BY directory, destination_kind, destination, message_id, turn
),
subscriptions_then AS (
    SELECT directory, destination_kind, destination, subscription, position AS since, until
    FROM (
        SELECT *, lead({'position': position, 'record_position': record_position,
                'happened_at': happened_at, 'kind': 'unsubscribe'}) OVER (
            PARTITION BY directory, subscription ORDER BY position) AS until
        FROM effects
        WHERE kind IN ('subscribe', 'unsubscribe') AND destination_kind LIKE '%topic'
    ) WHERE kind = 'subscribe'
),
topic_messages AS (
    SELECT directory, destination_kind, destination, message_id,
        arg_min(told, (position, record_position)) AS first,
        arg_max(told, record_position) FILTER (kind = 'update') AS updated,
        any_value(purges) AS purges
    FROM told WHERE destination_kind LIKE '%topic' AND is_add GROUP BY ALL
),
topic_removes AS (
    SELECT directory, destination_kind, destination, message_id, subscription,
        min(step) FILTER (kind IN ('remove', 'unmatched')) AS removed,
        bool_or(kind = 'prepared_remove') AS hidden
    FROM told WHERE destination_kind LIKE '%topic' AND NOT is_add GROUP BY ALL
),
for_subscriptions AS (
    SELECT directory, destination_kind, destination, message_id, subscription,
        first, updated, purges, removed, coalesce(hidden, false) AS hidden, until
    FROM topic_messages
    JOIN subscriptions_then USING (directory, destination_kind, destination)
    LEFT JOIN topic_removes
        USING (directory, destination_kind, destination, message_id, subscription)
    WHERE first.position > since AND (until IS NULL OR first.position < until.position)
        -- Who removes a topic ends its subscriptions.
        AND len(coalesce(list_filter(purges,
            lambda purge: purge.position BETWEEN since AND first.position), [])) = 0
),
ends AS (
    SELECT *, coalesce(updated, first) AS held, list_min(list_filter(
        [removed, until, list_filter(purges, lambda purge: purge.position > first.position)[1]],
        lambda step: step IS NOT NULL)) AS ending
    FROM (FROM in_queues UNION ALL BY NAME FROM for_subscriptions) WHERE first IS NOT NULL
)
SELECT directory, destination_kind, destination, message_id, subscription,
    first.position AS added, first.happened_at AS added_at,
    first.producer_id AS producer_id, first.priority AS priority, first.group_id AS group_id,
    first.transaction AS transaction,
    first.record_position AS stored, held.record_position AS located,
    held.record_bytes AS record_bytes, held.stored_at AS stored_at,
    held.message_bytes AS message_bytes, held.dead_letter_cause AS dead_letter_cause,
    ending.position AS ended, ending.record_position AS ender,
    ending.happened_at AS ended_at, ending.kind AS end_kind,
    hidden
FROM ends
