-- What waited at the end of each cell of time; `depth` is what the last line of statistics in the
-- cell says of a queue.
WITH stays AS (
    SELECT lives.*, seconds, last,
        epoch_ms(coalesce(added_at, stored_at)) // 1000 // seconds * seconds AS begun,
        CASE WHEN ended IS NULL THEN last + seconds
            ELSE epoch_ms(coalesce(ended_at, added_at)) // 1000 // seconds * seconds END AS gone
    FROM lives, cells,
        (SELECT epoch_ms(max(happened_at)) // 1000 // seconds * seconds AS last
            FROM effects, cells GROUP BY seconds)
),
waited AS (
    SELECT directory, destination_kind, destination, subscription,
        unnest(generate_series(begun, gone - seconds, seconds)) AS begins, messages, oldest
    FROM (
        SELECT directory, destination_kind, destination, subscription, begun, gone, seconds,
            count(*) AS messages, min(stored_at) AS oldest
        FROM stays WHERE begun < gone GROUP BY ALL
    )
),
empty_cells AS (
    SELECT directory, destination_kind, destination, subscription,
        unnest(generate_series(min(begun), any_value(last), any_value(seconds))) AS begins,
        0 AS messages
    FROM stays GROUP BY directory, destination_kind, destination, subscription
),
depths AS (
    SELECT directory, destination_kind, destination, NULL AS subscription,
        epoch_ms("at") // 1000 // seconds * seconds AS begins, arg_max(depth, position) AS depth
    FROM counted, cells WHERE destination_kind LIKE '%queue' GROUP BY ALL
)
SELECT directory, destination_kind, destination, subscription, to_timestamp(begins) AS time,
    seconds,
    coalesce(sum(messages), 0) AS waiting,
    (begins + seconds) * 1000 - epoch_ms(min(oldest)) AS oldest_ms,
    max(depth) AS depth
FROM (FROM waited UNION ALL BY NAME FROM empty_cells UNION ALL BY NAME FROM depths), cells
GROUP BY directory, destination_kind, destination, subscription, begins, seconds
ORDER BY directory, destination_kind, destination, subscription, time
