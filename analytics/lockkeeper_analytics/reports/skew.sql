-- A group goes to one consumer: one with half of the messages of a destination is hot.
WITH sent AS (
    SELECT directory, destination_kind, destination,
        if(end_kind = 'remove', greatest(epoch_ms(ended_at) - epoch_ms(stored_at), 0), NULL)
            AS taken_ms,
        unnest([{'what': 'group', 'value': group_id},
            {'what': 'priority', 'value': priority::VARCHAR}], recursive := true)
    FROM lives WHERE dead_letter_cause IS NULL
),
summed AS (
    SELECT directory, destination_kind, destination, what, value, count(*) AS messages,
        quantile_disc(taken_ms, 0.5)::DOUBLE AS p50_ms,
        quantile_disc(taken_ms, 0.99)::DOUBLE AS p99_ms
    FROM sent WHERE value IS NOT NULL GROUP BY ALL
)
SELECT directory, destination_kind, destination, what, value, messages,
    messages / sum(messages) OVER each AS share,
    count(*) OVER each AS of,
    p50_ms, p99_ms,
    what = 'group' AND share >= 0.5 AND messages >= 100 AND "of" > 1 AS hot
FROM summed
WINDOW each AS (PARTITION BY directory, destination_kind, destination, what)
QUALIFY (what = 'group' OR "of" > 1) AND row_number() OVER (
    PARTITION BY directory, destination_kind, destination, what ORDER BY messages DESC, value
) <= 20
ORDER BY directory, destination_kind, destination, what, messages DESC, value
