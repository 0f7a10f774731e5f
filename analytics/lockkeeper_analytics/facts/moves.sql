-- How many messages came to each destination, left and died there in each second: lines of
-- statistics count at their time, what they do not count (all, where there are none) when it
-- happened. Null: nothing tells.
WITH told AS (
    SELECT directory, destination_kind, destination, unix_seconds(counted.at) AS second,
        new_enqueued AS enqueued, new_dequeued AS dequeued, new_dead_lettered AS dead_lettered
    FROM counted
    UNION ALL
    SELECT directory, destination_kind, destination, unix_seconds(happened_at) AS second,
        CASE WHEN kind = 'add' THEN 1 ELSE 0 END, CASE WHEN kind = 'remove' THEN 1 ELSE 0 END, NULL
    FROM uncounted WHERE kind IN ('add', 'remove') AND happened_at IS NOT NULL
    UNION ALL
    SELECT directory, origin_kind, origin, unix_seconds(happened_at), NULL, NULL, 1
    FROM uncounted SEMI JOIN deaths
        ON uncounted.directory = deaths.directory
        AND uncounted.record_position = deaths.record_position
    WHERE kind = 'add' AND happened_at IS NOT NULL
)
SELECT directory, destination_kind, destination, second,
    CAST(sum(enqueued) AS BIGINT) AS enqueued,
    CAST(sum(dequeued) AS BIGINT) AS dequeued,
    CAST(sum(dead_lettered) AS BIGINT) AS dead_lettered
FROM told
WHERE second IS NOT NULL
GROUP BY directory, destination_kind, destination, second
