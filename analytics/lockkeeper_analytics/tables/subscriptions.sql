-- One row for each durable subscription and topic, ended ones too.
WITH waiting AS (
    SELECT directory, destination_kind, destination, subscription,
        count(*) AS pending, sum(message_bytes) AS pending_bytes
    FROM message_lifetimes WHERE ended IS NULL AND NOT hidden AND subscription IS NOT NULL
    GROUP BY directory, destination_kind, destination, subscription
),
oldest AS (
    SELECT lives.directory, lives.destination_kind, lives.destination, lives.subscription,
        min(dated(added, stored, applied.stored_at)) AS first
    FROM message_lifetimes lives JOIN applied_operations applied
        ON lives.directory = applied.directory AND stored = applied.record_position
    WHERE ended IS NULL AND NOT hidden AND lives.subscription IS NOT NULL
    GROUP BY lives.directory, lives.destination_kind, lives.destination, lives.subscription
),
acked AS (
    SELECT /*+ BROADCAST(subscribed) */ subscribed.directory, subscribed.destination_kind,
        subscribed.destination, subscribed.subscription, since,
        count_if(ack_type IS NULL OR ack_type <> 'unmatched') AS acknowledged,
        count_if(ack_type = 'unmatched') AS unmatched,
        max(written_in(position, record_position, happened_after, happened_before))
            FILTER (WHERE ack_type IS NULL OR ack_type <> 'unmatched') AS last
    FROM applied_operations applied JOIN subscribed
        ON applied.directory = subscribed.directory
        AND applied.destination_kind = subscribed.destination_kind
        AND applied.destination = subscribed.destination
        AND applied.subscription = subscribed.subscription
        AND position > since AND (until IS NULL OR position < until.position)
    WHERE kind IN ('remove', 'unmatched')
    GROUP BY subscribed.directory, subscribed.destination_kind, subscribed.destination,
        subscribed.subscription, since
),
said AS (
    SELECT directory, position, selector, no_local, retroactive
    FROM placed WHERE kind = 'subscribe'
)
SELECT subscribed.directory, journals.broker, subscribed.subscription, subscribed.destination_kind,
    subscribed.destination,
    CASE
        WHEN until IS NULL THEN 'live'
        WHEN until.kind = 'unsubscribe' THEN 'deleted'
        WHEN until.kind = 'subscribe' THEN 'replaced'
        ELSE 'dropped'
    END AS state,
    selector, no_local, said.retroactive,
    created_at AS created_earliest, created_before AS created_latest,
    until.happened_after AS ended_earliest, until.happened_before AS ended_latest,
    CASE WHEN until IS NULL THEN coalesce(pending, 0) ELSE 0 END AS pending,
    CAST(CASE WHEN until IS NULL THEN coalesce(pending_bytes, 0) ELSE 0 END AS BIGINT)
        AS pending_bytes,
    CASE WHEN until IS NULL THEN first.moment END AS oldest_pending_at,
    coalesce(acknowledged, 0) AS acknowledged, coalesce(unmatched, 0) AS unmatched,
    last.happened_after AS last_ack_earliest, last.happened_before AS last_ack_latest,
    CAST(shiftright(subscribed.since, 32) AS INT) AS file_id
FROM subscribed
LEFT JOIN said ON subscribed.directory = said.directory AND subscribed.since = said.position
LEFT JOIN waiting
    ON subscribed.directory = waiting.directory
    AND subscribed.destination_kind = waiting.destination_kind
    AND subscribed.destination = waiting.destination
    AND subscribed.subscription = waiting.subscription
LEFT JOIN oldest
    ON subscribed.directory = oldest.directory
    AND subscribed.destination_kind = oldest.destination_kind
    AND subscribed.destination = oldest.destination
    AND subscribed.subscription = oldest.subscription
LEFT JOIN acked
    ON subscribed.directory = acked.directory
    AND subscribed.destination_kind = acked.destination_kind
    AND subscribed.destination = acked.destination
    AND subscribed.subscription = acked.subscription AND subscribed.since = acked.since
LEFT JOIN journals ON subscribed.directory = journals.directory
ORDER BY until.position NULLS LAST, subscribed.since
