-- Every remove that acknowledges, with the ms since the stay that it ends began (null: nothing tells
-- when; without `has_add` the file of its arrival is gone, where nothing but records counts). The
-- time of a remove lies between two bounds; `latency_ms` is from the likeliest between. What
-- removes a message that became a dead letter, or a letter that was moved, acknowledges nothing.
-- Queues of streams are left out.
WITH removes AS (
    SELECT * FROM applied_operations
    WHERE kind = 'remove' AND NOT is_of_streams(destination_kind, destination)
),
stays AS (
    SELECT directory, ender, min(arrived_at) AS arrived_at
    FROM message_lifetimes WHERE end_kind = 'remove'
    GROUP BY directory, ender
),
went AS (
    SELECT directory, origin_kind, origin, shown_id, place_of(position, record_position) AS place
    FROM applied_operations
    WHERE kind = 'add' AND dead_letter_cause IS NOT NULL AND original_destination IS NOT NULL
),
-- What went with the cause of its death is of the last stay that began before it.
died AS (
    SELECT went.directory, went.place, place_of(added, stored) AS began,
        CASE WHEN end_kind = 'remove' THEN place_of(ended, ender) END AS ending,
        ended IS NULL AS is_there,
        max(place_of(added, stored)) OVER (PARTITION BY went.directory, went.place) AS last
    FROM went JOIN message_lifetimes lives
        ON went.directory = lives.directory AND went.origin_kind = lives.destination_kind
        AND went.origin = lives.destination
        AND went.shown_id = coalesce(lives.copy_of, lives.message_id)
        AND place_of(added, stored) < went.place
),
-- Whether nobody waits for it any more where it was.
left_behind AS (
    SELECT directory, began, count_if(is_there) = 0 AS is_over
    FROM died WHERE began = last GROUP BY directory, began
),
-- Several subscriptions may end by one remove.
pairs AS (
    SELECT directory, began, place, ending
    FROM died WHERE began = last AND ending IS NOT NULL
    GROUP BY directory, began, place, ending
),
turns AS (
    SELECT directory, began, ending, count_if(place < ending) AS came, max(place) AS latest,
        row_number() OVER (PARTITION BY directory, began ORDER BY ending) AS turn,
        count(*) OVER (PARTITION BY directory, began) AS turns
    FROM pairs GROUP BY directory, began, ending
),
-- Each remove takes the oldest letter that came before it and that none before it has taken, the
-- last one of a stay that is over else one that came after it: as in dead_letter_ends.
counted_out AS (
    SELECT turns.*, turn + least(0, min(came - turn) OVER (
            PARTITION BY directory, began ORDER BY turn
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)) AS taken
    FROM turns
),
served AS (
    SELECT counted_out.*, taken > coalesce(lag(taken) OVER (
            PARTITION BY directory, began ORDER BY turn), 0) AS has_one
    FROM counted_out
),
dead AS (
    SELECT served.directory, ending.record_position AS ender
    FROM served JOIN left_behind
        ON served.directory = left_behind.directory AND served.began = left_behind.began
    WHERE has_one OR is_over AND turn = turns AND latest > ending
),
taken AS (
    SELECT removes.*, arrived_at, ender IS NOT NULL AS ends_a_stay,
        unix_millis(arrived_at) AS arrived_ms
    FROM removes LEFT JOIN stays
        ON removes.directory = stays.directory AND removes.record_position = stays.ender
),
left_over AS (
    SELECT taken.* FROM taken ANTI JOIN dead
        ON taken.directory = dead.directory AND taken.record_position = dead.ender
),
-- Who counts with statistics need not be told of what is gone.
added AS (
    SELECT DISTINCT adds.directory, destination_kind, destination, message_id
    FROM applied_operations adds
    ANTI JOIN (SELECT DISTINCT directory FROM statistics) told ON adds.directory = told.directory
    WHERE kind = 'add'
)
SELECT left_over.directory, left_over.destination_kind, left_over.destination,
    left_over.message_id, subscription, consumer_id, ack_type,
    ends_a_stay OR added.message_id IS NOT NULL AS has_add,
    arrived_at, happened_at, happened_before,
    CASE WHEN unix_millis(happened_after) < arrived_ms THEN 0
        ELSE unix_millis(happened_after) - arrived_ms END AS earliest_ms,
    CASE WHEN unix_millis(happened_at) < arrived_ms THEN 0
        ELSE unix_millis(happened_at) - arrived_ms END AS latency_ms,
    CASE WHEN unix_millis(happened_before) < arrived_ms THEN 0
        ELSE unix_millis(happened_before) - arrived_ms END AS latest_ms
FROM left_over LEFT JOIN added
    ON left_over.directory = added.directory
    AND left_over.destination_kind = added.destination_kind
    AND left_over.destination = added.destination AND left_over.message_id = added.message_id
