-- Stuck: silent for a minute while messages wait. Slow: the broker found it so, or its median is
-- four times that of the middle consumer there. Who is closed, or was a broker's before, is gone.
WITH by_acknowledgements AS (
    SELECT directory, destination_kind, destination, consumer_id AS consumer,
        count(*) AS acknowledged,
        quantile_disc(latency_ms, 0.5)::DOUBLE AS p50_ms,
        quantile_disc(latency_ms, 0.99)::DOUBLE AS p99_ms,
        max(latency_ms)::DOUBLE AS max_ms,
        max(happened_at) AS last_ack_at
    FROM acknowledged WHERE consumer_id IS NOT NULL GROUP BY ALL
),
starts AS (
    SELECT directory, max((file_id, "offset")) AS started
    FROM events WHERE event IN ('start', 'takeover') GROUP BY ALL
),
last_events AS (
    SELECT directory, split_part(destination, '://', 1) AS destination_kind,
        regexp_replace(destination, '^[a-z-]+://', '') AS destination, consumer_id AS consumer,
        max("at") FILTER (event = 'consumerOpened') AS opened_at,
        max("at") FILTER (event = 'consumerClosed') AS closed_at,
        count(*) FILTER (event = 'slowConsumer') AS slow_events,
        max(held) AS held,
        max(delivered) AS delivered,
        arg_max(event, (file_id, "offset")) AS event,
        max((file_id, "offset")) AS place
    FROM events WHERE consumer_id IS NOT NULL AND destination IS NOT NULL GROUP BY ALL
),
by_events AS (
    SELECT *, event <> 'consumerClosed' AND (started IS NULL OR place > started) AS is_open
    FROM last_events LEFT JOIN starts USING (directory)
),
held_there AS (
    SELECT directory, destination_kind, destination,
        count(*) AS waiting, min(added_at) AS oldest_at
    FROM lives WHERE ended IS NULL AND NOT hidden GROUP BY ALL
),
anybody AS (
    SELECT directory, destination_kind, destination, max("at") AS anybody_at
    FROM (
        SELECT directory, destination_kind, destination, happened_at AS "at"
        FROM effects WHERE kind = 'remove'
        UNION ALL
        SELECT directory, destination_kind, destination, "at" FROM counted WHERE new_dequeued > 0
    ) GROUP BY ALL
),
connections AS (
    SELECT directory, connection_id, arg_max(
        {'client_id': client_id, 'address': address}, (file_id, "offset")) AS opened
    FROM events WHERE event = 'connectionOpened' GROUP BY ALL
),
told AS (
    SELECT directory, destination_kind, destination, consumer,
        opened.client_id AS client_id, opened.address AS address,
        acknowledged, delivered, p50_ms, p99_ms, max_ms, opened_at, closed_at, last_ack_at,
        coalesce(waiting, 0) AS waiting,
        if(coalesce(waiting, 0) > 0, epoch_ms(end_at) - epoch_ms(
            greatest(coalesce(last_ack_at, anybody_at), oldest_at, opened_at)), 0) AS silent_ms,
        coalesce(slow_events, 0) AS slow_events,
        held, is_open,
        quantile_disc(p50_ms, 0.5) OVER (
            PARTITION BY directory, destination_kind, destination) AS middle
    FROM by_acknowledgements
    FULL JOIN by_events USING (directory, destination_kind, destination, consumer)
    LEFT JOIN held_there USING (directory, destination_kind, destination)
    LEFT JOIN anybody USING (directory, destination_kind, destination)
    LEFT JOIN ends USING (directory)
    LEFT JOIN connections
        ON connections.directory = coalesce(by_acknowledgements.directory, by_events.directory)
        AND connection_id = regexp_replace(
            coalesce(by_acknowledgements.consumer, by_events.consumer),
            ':-?[0-9]+:-?[0-9]+$', '')
)
SELECT directory, destination_kind, destination, consumer, client_id, address,
    CASE
        WHEN NOT coalesce(is_open, true) THEN 'gone'
        WHEN silent_ms >= 60000 THEN 'stuck'
        WHEN slow_events > 0 THEN 'slow'
        WHEN p50_ms >= 1000 AND p50_ms >= 4 * middle AND acknowledged >= 20 THEN 'slow'
        ELSE 'ok'
    END AS verdict,
    acknowledged, delivered, p50_ms, p99_ms, max_ms, opened_at, closed_at, last_ack_at,
    waiting, silent_ms, slow_events, held
FROM told
ORDER BY list_position(['stuck', 'slow', 'ok', 'gone'], verdict), silent_ms DESC,
    directory, destination_kind, destination, consumer
LIMIT 1000
