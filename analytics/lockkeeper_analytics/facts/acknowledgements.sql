-- Every acknowledgement that took effect, and what came of its message: `stored` is the add whose
-- stay it ended, for one subscription perhaps; null: its message is in no file, or was not there.
WITH ends AS (
    SELECT DISTINCT directory, ender, stored, added
    FROM message_lifetimes WHERE end_kind IN ('remove', 'unmatched')
),
told AS (
    SELECT applied.directory, destination_kind, destination, message_id, subscription,
        ack_type, consumer_id, transaction, position, record_position,
        happened_after, happened_before, ends.stored, target AS dead_letter,
        coalesce(cause, ack_cause) AS cause
    FROM applied_operations applied
    LEFT JOIN ends
        ON applied.directory = ends.directory AND applied.record_position = ends.ender
    LEFT JOIN dead_letter_ends
        ON applied.directory = dead_letter_ends.directory
        AND applied.record_position = dead_letter_ends.ender
    WHERE kind IN ('remove', 'unmatched')
)
SELECT told.*,
    CASE
        WHEN ack_type = 'expired' OR lower(cause) LIKE '%expired%' THEN 'expired'
        WHEN dead_letter IS NOT NULL OR ack_type = 'poison' THEN 'dead_lettered'
        WHEN ack_type = 'unmatched' THEN 'unmatched'
        ELSE 'acknowledged'
    END AS outcome
FROM told
