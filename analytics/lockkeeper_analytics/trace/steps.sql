-- The steps of messages with an id or a correlation id, of their copies, and of those they are
-- copies of: `step` is `arrived`, `redelivered` (the journal notes it), or the outcome that a message
-- has in the table `messages`. `destination_before` is where a moved message was, `target` where a
-- dead one went. What has no end yet has no time, and comes last.
-- In a network, `forwarded` is the end of a message that is at another broker then. One that came
-- over a bridge and waits in a queue without a consumer is `stranded`. `passed` says that a message
-- was at a broker of which no record tells: it came further. Without a directory that one's journal
-- is not given. `from_broker` is where an `arrived` message was before, `to_broker` where it went.
SELECT earliest, latest, directory, broker, destination_kind, destination, step, message_id, copy_of,
    retry_of, correlation_id, subscription, redeliveries, cause, destination_before, target, client,
    transaction, file_id, from_broker, to_broker, bridge
FROM (
    SELECT directory, broker, destination_kind, destination, message_id, copy_of, retry_of,
        correlation_id,
        CAST(NULL AS STRING) AS subscription, 'arrived' AS step,
        CASE WHEN original_destination IS NULL OR from_broker IS NOT NULL THEN 0 ELSE 3 END AS turn,
        -- A moved message keeps the time when it first came.
        CASE WHEN original_destination IS NULL THEN coalesce(stored_at, added_earliest)
            ELSE coalesce(added_earliest, stored_at) END AS earliest,
        CASE WHEN original_destination IS NULL THEN coalesce(stored_at, added_latest)
            ELSE coalesce(added_latest, stored_at) END AS latest,
        redeliveries, dead_letter_cause AS cause, original_destination AS destination_before,
        CAST(NULL AS STRING) AS target, producer_id AS client, transaction, file_id,
        from_broker, CAST(NULL AS STRING) AS to_broker, came_by AS bridge, way
    FROM {stays}
    UNION ALL
    SELECT directory, broker, destination_kind, destination, message_id, copy_of, retry_of,
        correlation_id,
        CASE WHEN size(waiting_for) > 0 THEN array_join(waiting_for, ', ') END,
        CASE WHEN outcome = 'acknowledged' AND to_broker IS NOT NULL THEN 'forwarded'
            WHEN outcome = 'pending' AND is_left THEN 'stranded' ELSE outcome END,
        4, ended_earliest, ended_latest,
        NULL, end_cause, NULL, dead_letter_destination, consumer_id, end_transaction, NULL,
        NULL, to_broker, CASE WHEN went_by <> '' THEN went_by END, way
    FROM {stays}
    UNION ALL
    SELECT directory, broker, destination_kind, destination, message_id, NULL, NULL, NULL,
        subscription, outcome, 2, acked_at_earliest, acked_at_latest,
        NULL, cause, NULL, NULL, consumer_id, transaction, file_id, NULL, NULL, NULL, NULL
    FROM {ends}
    UNION ALL
    SELECT directory, broker, destination_kind, destination, message_id, copy_of, NULL,
        NULL, NULL, 'redelivered', 1, written_after, written_before,
        redeliveries, NULL, NULL, NULL, NULL, transaction, file_id, NULL, NULL, NULL, NULL
    FROM {records} WHERE kind = 'update' AND message_id IN (SELECT id FROM {ids})
    UNION ALL
    SELECT source_directory, went.from_broker, went.destination_kind, went.destination,
        went.message_id, NULL, NULL, NULL, NULL, 'passed', -1, NULL, went.stored_at,
        NULL, NULL, NULL, NULL, NULL, NULL, NULL,
        NULL, went.to_broker, CASE WHEN went.bridge <> '' THEN went.bridge END, went.before
    FROM {departures} went ANTI JOIN {stays} here ON source_directory = here.directory
        AND went.message_id = here.message_id AND went.before = here.way
) steps
ORDER BY coalesce(earliest, latest) NULLS LAST, turn, length(way), directory, destination,
    message_id, step
