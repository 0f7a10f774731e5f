-- The removes whose messages became dead letters: where these went and why. A copy in the dead letter
-- queue may come before the remove of its message or after it; of several, each is of one remove. A
-- letter that somebody moved died no second time by that.
WITH copies AS (
    SELECT directory, destination_kind, destination, copy_of, message_id,
        place_of(position, record_position) AS place
    FROM arrivals WHERE copy_of IS NOT NULL AND arrival <> 'moved'
),
came AS (
    SELECT arrivals.directory, arrivals.origin_kind, arrivals.origin, arrivals.shown_id,
        arrivals.dead_letter_cause AS cause,
        arrivals.destination_kind || '://' || arrivals.destination AS target,
        place_of(arrivals.position, arrivals.record_position) AS place
    FROM arrivals SEMI JOIN letters
        ON arrivals.directory = letters.directory
        AND arrivals.record_position = letters.record_position
    WHERE arrival IN ('begins', 'unwanted')
        AND original_destination IS NOT NULL AND arrivals.dead_letter_cause IS NOT NULL
),
-- The id that the message had where it died: its own, or that of the broker's last copy.
known AS (
    SELECT came.directory, origin_kind, origin, shown_id, cause, target, came.place,
        coalesce(max_by(copies.message_id, copies.place), shown_id) AS message_id
    FROM came LEFT JOIN copies
        ON came.directory = copies.directory AND origin_kind = copies.destination_kind
        AND origin = copies.destination AND shown_id = copies.copy_of
        AND copies.place <= came.place
    GROUP BY came.directory, origin_kind, origin, shown_id, cause, target, came.place
),
found AS (
    SELECT known.directory, known.place, cause, target,
        max(place_of(added, stored)).record_position AS stored
    FROM known JOIN message_stays stays
        ON known.directory = stays.directory AND origin_kind = stays.destination_kind
        AND origin = stays.destination AND known.message_id = stays.message_id
        AND place_of(added, stored) < known.place
    GROUP BY known.directory, known.place, cause, target
),
numbered AS (
    SELECT found.directory, found.stored, cause, target, found.place,
        stays.ended IS NOT NULL AND place_of(stays.ended, stays.ender) < found.place AS is_late,
        row_number() OVER (
            PARTITION BY found.directory, found.stored,
                stays.ended IS NOT NULL AND place_of(stays.ended, stays.ender) < found.place
            ORDER BY found.place) AS number
    FROM found JOIN message_stays stays ON found.directory = stays.directory AND found.stored = stays.stored
),
ends AS (
    SELECT DISTINCT lives.directory, lives.stored, lives.ender,
        place_of(lives.ended, lives.ender) AS place,
        stays.ended IS NOT NULL AS is_over
    FROM message_lifetimes lives
    JOIN message_stays stays ON lives.directory = stays.directory AND lives.stored = stays.stored
    WHERE lives.end_kind IN ('remove', 'unmatched')
        AND lives.stored IN (SELECT stored FROM found)
),
-- Each remove takes the oldest copy that came before it and that none before it has taken.
there AS (
    SELECT ends.directory, ends.stored, ender, ends.place, is_over,
        row_number() OVER (
            PARTITION BY ends.directory, ends.stored ORDER BY ends.place) AS turn,
        count(*) OVER (PARTITION BY ends.directory, ends.stored) AS turns,
        count(numbered.number) AS copies
    FROM ends LEFT JOIN numbered
        ON ends.directory = numbered.directory AND ends.stored = numbered.stored
        AND NOT is_late AND numbered.place < ends.place
    GROUP BY ends.directory, ends.stored, ender, ends.place, is_over
),
counted_out AS (
    SELECT there.*, turn + least(0, min(copies - turn) OVER (
            PARTITION BY directory, stored ORDER BY turn
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)) AS taken
    FROM there
),
served AS (
    SELECT counted_out.*, taken > coalesce(lag(taken) OVER (
            PARTITION BY directory, stored ORDER BY turn), 0) AS has_one
    FROM counted_out
)
SELECT served.directory, ender, target, cause
FROM served JOIN numbered
    ON served.directory = numbered.directory AND served.stored = numbered.stored
    AND CASE WHEN has_one THEN NOT is_late AND taken = number
        ELSE is_over AND turn = turns AND is_late AND number = 1 END
