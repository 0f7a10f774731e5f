-- What an operator moved is no sending. Of topics each subscription has its own, so there nobody
-- can say that a message was processed again.
WITH sent AS (
    SELECT directory, destination_kind, destination, message_id,
        max(regexp_replace(producer_id, ':-?[0-9]+:-?[0-9]+$', '')) AS producer,
        count(*) AS stored,
        min(stored_at) AS first_at,
        max(stored_at) AS last_at
    FROM effects WHERE kind = 'add' AND original_destination IS NULL
    GROUP BY directory, destination_kind, destination, message_id
    HAVING count(*) > 1
    ORDER BY stored DESC, directory, destination_kind, destination, message_id
    LIMIT 1000
),
steps AS (
    SELECT *, lag(kind) OVER (
            PARTITION BY directory, destination_kind, destination, message_id
            ORDER BY position, record_position) AS before
    FROM effects SEMI JOIN sent USING (directory, destination_kind, destination, message_id)
    WHERE kind IN ('add', 'remove')
),
again AS (
    SELECT directory, destination_kind, destination, message_id, count(*) AS times
    FROM steps WHERE kind = 'add' AND before = 'remove' GROUP BY ALL
)
SELECT directory, destination_kind, destination, producer, message_id, stored,
    CASE WHEN destination_kind LIKE '%queue' THEN coalesce(times, 0) END AS processed_again,
    first_at, last_at
FROM sent LEFT JOIN again USING (directory, destination_kind, destination, message_id)
ORDER BY stored DESC, directory, destination_kind, destination, message_id
