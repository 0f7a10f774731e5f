-- Messages by their group, and by their priority where there are several; the biggest 20 values of
-- each destination, since there may be a group for each customer. `share` is the part of the
-- messages that have one, `of` how many values there are. Percentiles are in ms from arrival to
-- acknowledgement; for a topic, a message counts once for each durable subscription. A group goes
-- to one consumer: one with half of the messages of a destination is hot, the others can take the
-- other half at most. Of fewer than 100 messages a share says little.
WITH sent AS (
    SELECT directory, destination_kind, destination, group_id, CAST(priority AS STRING) AS level,
        CASE WHEN end_kind = 'remove' AND ended_at > stored_at
                THEN unix_millis(ended_at) - unix_millis(stored_at)
            WHEN end_kind = 'remove' AND ended_at <= stored_at THEN 0 END AS taken_ms
    FROM message_lifetimes
    WHERE dead_letter_cause IS NULL AND NOT is_of_streams(destination_kind, destination)
),
summed AS (
    SELECT directory, destination_kind, destination, 'group' AS what, group_id AS value,
        count(*) AS messages,
        CAST(percentile_approx(taken_ms, 0.5, 1000) AS DOUBLE) AS p50_ms,
        CAST(percentile_approx(taken_ms, 0.99, 1000) AS DOUBLE) AS p99_ms
    FROM sent WHERE group_id IS NOT NULL
    GROUP BY directory, destination_kind, destination, group_id
    UNION ALL
    SELECT directory, destination_kind, destination, 'priority', level,
        count(*),
        CAST(percentile_approx(taken_ms, 0.5, 1000) AS DOUBLE),
        CAST(percentile_approx(taken_ms, 0.99, 1000) AS DOUBLE)
    FROM sent WHERE level IS NOT NULL
    GROUP BY directory, destination_kind, destination, level
),
ranked AS (
    SELECT directory, destination_kind, destination, what, value, messages,
        messages / sum(messages) OVER each AS share,
        count(*) OVER each AS values_there,
        p50_ms, p99_ms,
        row_number() OVER (
            PARTITION BY directory, destination_kind, destination, what
            ORDER BY messages DESC, value) AS place
    FROM summed
    WINDOW each AS (PARTITION BY directory, destination_kind, destination, what)
)
SELECT directory, destination_kind, destination, what, value, messages, share,
    values_there AS of,
    p50_ms, p99_ms,
    what = 'group' AND share >= 0.5 AND messages >= 100 AND values_there > 1 AS hot
FROM ranked
WHERE (what = 'group' OR values_there > 1) AND place <= 20
ORDER BY directory, destination_kind, destination, what, messages DESC, value
