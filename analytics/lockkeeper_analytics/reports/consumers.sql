-- What each consumer took and how late: percentiles in ms from arrival to acknowledgement, where
-- acknowledgements name their consumers, as ActiveMQ's do. Events tell when one was opened and
-- closed, how many messages were `delivered` to it (at its close) and how often it was found slow,
-- `held` messages in its window. `silent_ms` is how long before the journal's end it had last
-- acknowledged (where that is not said: anybody there), while messages waited.
-- Stuck: silent for a minute while messages wait, which is longer than pauses of a garbage
-- collector and redelivery delays. Slow: the broker found it so, or its median is a second and four
-- times that of the middle consumer there; of fewer than 20 messages a median says little. Who is
-- closed, or was a broker's before, is gone. Clients that connect for each message make as many
-- consumers as messages: the worst 1,000 are told.
WITH by_acknowledgements AS (
    SELECT directory, destination_kind, destination, consumer_id AS consumer,
        count(*) AS acknowledged,
        CAST(percentile_approx(latency_ms, 0.5, 1000) AS DOUBLE) AS p50_ms,
        CAST(percentile_approx(latency_ms, 0.99, 1000) AS DOUBLE) AS p99_ms,
        CAST(max(latency_ms) AS DOUBLE) AS max_ms,
        max(happened_at) AS last_ack_at
    FROM acknowledged WHERE consumer_id IS NOT NULL
    GROUP BY directory, destination_kind, destination, consumer_id
),
last_events AS (
    SELECT directory, destination_kind, destination, consumer_id AS consumer,
        max(CASE WHEN event = 'consumerOpened' THEN client_events.at END) AS opened_at,
        max(CASE WHEN event = 'consumerClosed' THEN client_events.at END) AS closed_at,
        count_if(event = 'slowConsumer') AS slow_events,
        max(held) AS held,
        max(delivered) AS delivered,
        max_by(event, position) FILTER (WHERE event IS NOT NULL) AS event,
        max(position) AS position
    FROM client_events WHERE consumer_id IS NOT NULL AND destination IS NOT NULL
    GROUP BY directory, destination_kind, destination, consumer_id
),
by_events AS (
    SELECT directory, destination_kind, destination, consumer,
        opened_at, closed_at, slow_events, held, delivered,
        event <> 'consumerClosed' AND position > coalesce(started, -1) AS is_open
    FROM last_events LEFT JOIN last_starts USING (directory)
),
held_there AS (
    SELECT directory, destination_kind, destination,
        count(*) AS waiting, min(added_at) AS oldest_at
    FROM message_lifetimes WHERE ended IS NULL AND NOT hidden
    GROUP BY directory, destination_kind, destination
),
anybody AS (
    SELECT directory, destination_kind, destination, max(moment) AS anybody_at
    FROM (
        SELECT directory, destination_kind, destination, happened_at AS moment
        FROM applied_operations WHERE kind = 'remove'
        UNION ALL
        SELECT directory, destination_kind, destination, counted.at
        FROM counted WHERE new_dequeued > 0
    ) taken
    GROUP BY directory, destination_kind, destination
),
known AS (
    SELECT directory, destination_kind, destination, consumer,
        regexp_replace(consumer, ':-?[0-9]+:-?[0-9]+$', '') AS connection_id,
        acknowledged, p50_ms, p99_ms, max_ms, last_ack_at,
        opened_at, closed_at, slow_events, held, delivered, is_open
    FROM by_acknowledgements
    FULL JOIN by_events USING (directory, destination_kind, destination, consumer)
),
middles AS (
    SELECT directory, destination_kind, destination,
        percentile_approx(p50_ms, 0.5, 10000) AS middle
    FROM known GROUP BY directory, destination_kind, destination
),
told AS (
    SELECT directory, destination_kind, destination, consumer, client_id, address,
        acknowledged, delivered, p50_ms, p99_ms, max_ms, opened_at, closed_at, last_ack_at,
        coalesce(waiting, 0) AS waiting,
        CASE WHEN waiting > 0 THEN unix_millis(end_at) - unix_millis(
            greatest(coalesce(last_ack_at, anybody_at), oldest_at, opened_at)) ELSE 0 END
            AS silent_ms,
        coalesce(slow_events, 0) AS slow_events,
        held, is_open, middle
    FROM known
    LEFT JOIN middles USING (directory, destination_kind, destination)
    LEFT JOIN held_there USING (directory, destination_kind, destination)
    LEFT JOIN anybody USING (directory, destination_kind, destination)
    LEFT JOIN ends USING (directory)
    LEFT JOIN connections USING (directory, connection_id)
),
judged AS (
    SELECT told.*,
        CASE
            WHEN NOT coalesce(is_open, true) THEN 'gone'
            WHEN silent_ms >= 60000 THEN 'stuck'
            WHEN slow_events > 0 THEN 'slow'
            WHEN p50_ms >= 1000 AND p50_ms >= 4 * middle AND acknowledged >= 20 THEN 'slow'
            ELSE 'ok'
        END AS verdict
    FROM told
)
SELECT directory, destination_kind, destination, consumer, client_id, address, verdict,
    acknowledged, delivered, p50_ms, p99_ms, max_ms, opened_at, closed_at, last_ack_at,
    waiting, silent_ms, slow_events, held
FROM judged
ORDER BY CASE verdict WHEN 'stuck' THEN 0 WHEN 'slow' THEN 1 WHEN 'ok' THEN 2 ELSE 3 END,
    silent_ms DESC, directory, destination_kind, destination, consumer
LIMIT 1000
