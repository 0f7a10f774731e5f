-- Every remove that acknowledges, with the ms since the stay that it ends began (null: nothing tells
-- when; without `has_add` the file of its arrival is gone, where nothing but records counts). The
-- time of a remove lies between two bounds; `latency_ms` is from the likeliest between. What
-- removes a message that became a dead letter acknowledges nothing. Queues of streams are left out.
WITH removes AS (
    SELECT * FROM applied_operations
    WHERE kind = 'remove' AND NOT is_of_streams(destination_kind, destination)
),
stays AS (
    SELECT directory, ender, min(arrived_at) AS arrived_at
    FROM message_lifetimes WHERE end_kind = 'remove'
    GROUP BY directory, ender
),
letters AS (
    SELECT directory, origin_kind, origin, shown_id, place_of(position, record_position) AS place
    FROM applied_operations
    WHERE kind = 'add' AND dead_letter_cause IS NOT NULL AND original_destination IS NOT NULL
),
-- A letter is of the last stay that began before it.
died AS (
    SELECT letters.directory, letters.place, place_of(added, stored) AS began,
        CASE WHEN end_kind = 'remove' THEN place_of(ended, ender) END AS ending,
        max(place_of(added, stored)) OVER (PARTITION BY letters.directory, letters.place) AS last
    FROM letters JOIN message_lifetimes lives
        ON letters.directory = lives.directory AND letters.origin_kind = lives.destination_kind
        AND letters.origin = lives.destination
        AND letters.shown_id = coalesce(lives.copy_of, lives.message_id)
        AND place_of(added, stored) < letters.place
),
-- Of several ends of a stay it is the one that it came before, else the last.
deaths AS (
    SELECT directory,
        coalesce(min(ending) FILTER (WHERE ending > place), max(ending)) AS ending
    FROM died WHERE began = last
    GROUP BY directory, place
),
dead AS (
    SELECT directory, ending.record_position AS ender FROM deaths WHERE ending IS NOT NULL
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
