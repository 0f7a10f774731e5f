-- Every message with what became of it: `begins` is its place in the order of adds, `ends` in that of
-- ends (null: it is there), `stored` the add that began its stay, null where it never was there.
WITH told AS (
    SELECT directory, stored, count(*) AS acknowledgements,
        bool_or(outcome = 'dead_lettered') AS is_dead,
        bool_or(outcome = 'expired') AS is_expired,
        bool_or(outcome = 'acknowledged') AS is_acknowledged,
        array_sort(array_agg(subscription) FILTER (WHERE subscription IS NOT NULL))
            AS acknowledged_by,
        min(last_end(position, record_position, dead_letter, consumer_id, transaction, cause))
            FILTER (WHERE dead_letter IS NOT NULL) AS death,
        max(last_end(position, record_position, dead_letter, consumer_id, transaction, cause))
            AS last
    FROM acknowledgements WHERE stored IS NOT NULL
    GROUP BY directory, stored
),
arrived AS (
    SELECT arrivals.directory, arrivals.destination_kind, arrivals.destination,
        arrivals.message_id, copy_of, original_destination, dead_letter_cause, transaction,
        stored_at, position, record_position, happened_after, happened_before,
        CASE
            WHEN arrival <> 'begins' THEN arrival
            WHEN ended IS NULL THEN CASE WHEN in_doubt THEN 'in_doubt' ELSE 'pending' END
            WHEN end_kind = 'remove_destination' THEN 'dropped'
            WHEN is_dead THEN 'dead_lettered'
            WHEN is_expired THEN 'expired'
            WHEN is_acknowledged THEN 'acknowledged'
            WHEN acknowledgements > 0 THEN 'unmatched'
            ELSE 'dropped'
        END AS outcome,
        CASE WHEN arrival = 'begins' THEN ended ELSE position END AS ended,
        CASE WHEN arrival = 'begins' THEN ender ELSE record_position END AS ender,
        CASE WHEN arrival = 'begins' THEN ended_after ELSE happened_after END
            AS ended_after,
        CASE WHEN arrival = 'begins' THEN ended_before ELSE happened_before END
            AS ended_before,
        CASE WHEN ended IS NOT NULL THEN last END AS last,
        death.dead_letter AS dead_letter_destination,
        coalesce(acknowledged_by, no_texts()) AS acknowledged_by,
        coalesce(waiting_for, no_texts()) AS waiting_for,
        stays.stored, coalesce(located, record_position) AS located,
        coalesce(stays.record_bytes, arrivals.record_bytes) AS record_bytes,
        CASE WHEN stays.stored IS NULL THEN arrivals.message_bytes ELSE stays.message_bytes END
            AS message_bytes
    FROM arrivals
    LEFT JOIN message_stays stays
        ON arrivals.directory = stays.directory AND arrivals.record_position = stays.stored
    LEFT JOIN told ON arrivals.directory = told.directory AND stays.stored = told.stored
    WHERE arrival <> 'moved'
),
-- What a transaction adds that was not committed.
undone AS (
    SELECT placed.directory, placed.destination_kind, placed.destination, message_id, copy_of,
        original_destination, dead_letter_cause, placed.transaction, stored_at,
        coalesce(settled, placed.position) AS position, placed.position AS record_position,
        CASE WHEN settled IS NULL THEN placed.written_after ELSE settled_after END
            AS happened_after,
        CASE WHEN settled IS NULL THEN placed.written_before ELSE settled_before END
            AS happened_before,
        settled,
        CASE
            WHEN settled IS NOT NULL THEN 'rolled_back'
            WHEN prepared.transaction IS NOT NULL THEN 'in_doubt'
            ELSE 'open'
        END AS outcome,
        record_bytes, placed.message_bytes
    FROM placed
    JOIN transaction_records undecided
        ON placed.directory = undecided.directory AND placed.position = undecided.position
    LEFT JOIN prepared_transactions prepared
        ON placed.directory = prepared.directory AND placed.transaction = prepared.transaction
    WHERE placed.kind = 'add' AND (settled_kind IS NULL OR settled_kind = 'rollback')
)
SELECT directory, destination_kind, destination, message_id, copy_of, outcome, stored_at,
    happened_after, happened_before, ended_after, ended_before,
    acknowledged_by, waiting_for, dead_letter_destination, last,
    original_destination, dead_letter_cause, transaction, message_bytes,
    stored, located, record_bytes, position, record_position, ended, ender
FROM arrived
UNION ALL
SELECT directory, destination_kind, destination, message_id, copy_of, outcome, stored_at,
    happened_after, happened_before,
    CASE WHEN settled IS NOT NULL THEN happened_after END,
    CASE WHEN settled IS NOT NULL THEN happened_before END,
    no_texts(), no_texts(), NULL, NULL,
    original_destination, dead_letter_cause, transaction, message_bytes,
    NULL, record_position, record_bytes, position, record_position,
    settled, CASE WHEN settled IS NOT NULL THEN record_position END
FROM undone
