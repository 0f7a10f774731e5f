-- Every remove that acknowledges, with the ms since its message arrived (null: its file is gone).
-- The time of a remove lies between two bounds; `latency_ms` is from the likeliest between.
WITH arrived AS (
    SELECT directory, destination_kind, destination, message_id, min(stored_at) AS arrived_at,
        min(shown_id) AS stored_as
    FROM effects WHERE kind = 'add' GROUP BY ALL
),
dead AS (
    SELECT directory, origin_kind AS destination_kind, origin AS destination, shown_id
    FROM effects WHERE kind = 'add' AND dead_letter_cause IS NOT NULL
),
elapsed AS (
    SELECT taken.directory, taken.destination_kind, taken.destination, message_id,
        subscription, consumer_id, ack_type, arrived_at, happened_at,
        happened_before,
        epoch_ms(happened_after) - epoch_ms(arrived_at) AS earliest_ms,
        epoch_ms(happened_at) - epoch_ms(arrived_at) AS latency_ms,
        epoch_ms(happened_before) - epoch_ms(arrived_at) AS latest_ms
    FROM (FROM effects WHERE kind = 'remove') taken
    LEFT JOIN arrived USING (directory, destination_kind, destination, message_id)
    ANTI JOIN dead ON dead.directory = taken.directory
        AND dead.destination_kind = taken.destination_kind
        AND dead.destination = taken.destination
        AND dead.shown_id = coalesce(stored_as, message_id)
)
SELECT * REPLACE (
    if(earliest_ms < 0, 0, earliest_ms) AS earliest_ms,
    if(latency_ms < 0, 0, latency_ms) AS latency_ms,
    if(latest_ms < 0, 0, latest_ms) AS latest_ms
)
FROM elapsed
