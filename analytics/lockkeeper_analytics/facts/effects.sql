-- What the records came to: what was done in a transaction counts where its commit is, or not at
-- all. `position` orders a directory; removes of a prepared transaction are `prepared_remove`,
-- those of what a subscription's selector did not want are `unmatched`.
WITH placed AS (
    SELECT *, (file_id::BIGINT << 32) + "offset" AS position FROM records
),
outcomes AS (
    SELECT directory, transaction, position, kind, written_after, written_before
    FROM placed WHERE kind IN ('commit', 'rollback')
),
prepared AS (
    SELECT directory, transaction, max(position) AS position
    FROM placed WHERE kind = 'prepare' GROUP BY ALL
),
decided AS (
    SELECT each.*, each.position AS record_position, outcome.kind AS outcome,
        CASE
            WHEN each.transaction IS NULL OR outcome.kind = 'commit' THEN each.kind
            WHEN outcome.kind IS NULL AND prepared.position > each.position
                AND each.kind = 'remove' THEN 'prepared_remove'
        END AS effect,
        CASE WHEN outcome.kind = 'commit' THEN outcome.position ELSE each.position END AS place,
        CASE WHEN outcome.kind = 'commit' THEN outcome.written_after
            ELSE each.written_after END AS happened_after,
        CASE WHEN outcome.kind = 'commit' THEN outcome.written_before
            ELSE each.written_before END AS happened_before
    FROM (
        SELECT * FROM placed WHERE kind IN
            ('add', 'update', 'remove', 'subscribe', 'unsubscribe', 'remove_destination')
    ) each
    ASOF LEFT JOIN outcomes outcome
        ON each.directory = outcome.directory AND each.transaction = outcome.transaction
        AND each.position < outcome.position
    LEFT JOIN prepared
        ON each.directory = prepared.directory AND each.transaction = prepared.transaction
)
SELECT directory, place AS position,
    if(effect = 'remove' AND ack_type = 'unmatched' AND subscription IS NOT NULL,
        'unmatched', effect) AS kind,
    record_position, record_bytes,
    destination_kind, destination, message_id, copy_of, subscription, transaction,
    coalesce(copy_of, message_id) AS shown_id,
    happened_after, happened_before,
    -- The middle of the bounds, but not far above the first.
    happened_after + to_milliseconds(least(25,
        (epoch_ms(coalesce(happened_before, happened_after)) - epoch_ms(happened_after)) // 2
    )) AS happened_at,
    producer_id, priority, group_id, consumer_id, ack_type, ack_cause,
    stored_at, message_bytes, redeliveries, dead_letter_cause, original_destination,
    coalesce(split_part(original_destination, '://', 1), destination_kind) AS origin_kind,
    coalesce(regexp_replace(original_destination, '^[a-z-]+://', ''), destination) AS origin
FROM decided
WHERE effect IS NOT NULL
