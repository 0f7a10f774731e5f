-- What the records came to: what was done in a transaction counts where its commit is, or not at
-- all. `position` orders a directory; removes of a prepared transaction are `prepared_remove`,
-- those of what a subscription's selector did not want are `unmatched`. `happened_at` is the
-- likeliest time between `happened_after` and `happened_before`.
WITH done AS (
    SELECT * FROM placed
    WHERE kind IN ('add', 'update', 'remove', 'subscribe', 'unsubscribe', 'remove_destination')
),
applied AS (
    SELECT done.*, kind AS effect, position AS place,
        written_after AS happened_after, written_before AS happened_before
    FROM done WHERE transaction IS NULL OR kind NOT IN ('add', 'remove')
    UNION ALL
    SELECT done.*,
        CASE WHEN outcomes.kind = 'commit' THEN done.kind ELSE 'prepared_remove' END AS effect,
        CASE WHEN outcomes.kind = 'commit' THEN outcomes.position ELSE done.position END AS place,
        CASE WHEN outcomes.kind = 'commit' THEN outcomes.written_after
            ELSE done.written_after END AS happened_after,
        CASE WHEN outcomes.kind = 'commit' THEN outcomes.written_before
            ELSE done.written_before END AS happened_before
    FROM done
    LEFT JOIN outcomes
        ON done.directory = outcomes.directory AND done.transaction = outcomes.transaction
        AND done.position < outcomes.position AND done.position > outcomes.previous
    LEFT JOIN prepared_transactions prepared
        ON done.directory = prepared.directory AND done.transaction = prepared.transaction
    WHERE done.transaction IS NOT NULL AND done.kind IN ('add', 'remove') AND (
        outcomes.kind = 'commit'
        OR outcomes.kind IS NULL AND done.kind = 'remove' AND prepared.transaction IS NOT NULL)
)
SELECT directory, place AS position, position AS record_position,
    happened_after, happened_before,
    -- The middle of the bounds, but not far above the first: half of what lies between two clock
    -- lines. What is written between two adds an hour apart most likely followed the first at once.
    timestamp_millis(unix_millis(happened_after) + least(25, div(
        unix_millis(coalesce(happened_before, happened_after)) - unix_millis(happened_after), 2
    ))) AS happened_at,
    record_bytes,
    CASE WHEN effect = 'remove' AND ack_type = 'unmatched' AND subscription IS NOT NULL
        AND destination_kind LIKE '%topic' THEN 'unmatched' ELSE effect END AS kind,
    destination_kind, destination, message_id, copy_of, subscription, transaction,
    stored_at, message_bytes, redeliveries, dead_letter_cause, original_destination,
    producer_id, priority, group_id, consumer_id, ack_type, ack_cause, retroactive,
    -- The JMSMessageID, also where `message_id` is a copy's.
    coalesce(copy_of, message_id) AS shown_id,
    -- Where a dead letter was meant for; without a move that the journal tells of, where it is.
    coalesce(split_part(original_destination, '://', 1), destination_kind) AS origin_kind,
    coalesce(regexp_replace(original_destination, '^[a-z-]+://', ''), destination) AS origin
FROM applied
