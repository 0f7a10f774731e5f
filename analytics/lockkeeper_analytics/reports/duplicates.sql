-- Messages that a producer stored several times; the 1,000 most frequent. What an operator moved is
-- no sending. `processed_again` counts those that came when the message had ended before, so that a
-- consumer got it again; for the others a replay keeps one. Of topics each subscription has its
-- own, so there nobody can say that a message was processed again.
WITH sent AS (
    SELECT directory, destination_kind, destination, message_id,
        max(regexp_replace(producer_id, ':-?[0-9]+:-?[0-9]+$', '')) AS producer,
        count(*) AS stored,
        min(stored_at) AS first_at,
        max(stored_at) AS last_at
    FROM applied_operations WHERE kind = 'add' AND original_destination IS NULL
        AND NOT is_of_streams(destination_kind, destination)
    GROUP BY directory, destination_kind, destination, message_id
    HAVING count(*) > 1
    ORDER BY stored DESC, directory, destination_kind, destination, message_id
    LIMIT 1000
),
steps AS (
    SELECT /*+ BROADCAST(sent) */ applied.directory, applied.destination_kind,
        applied.destination, applied.message_id, kind,
        lag(kind) OVER (
            PARTITION BY applied.directory, applied.destination_kind, applied.destination,
                applied.message_id
            ORDER BY position, record_position) AS before
    FROM applied_operations applied SEMI JOIN sent
        ON applied.directory = sent.directory
        AND applied.destination_kind = sent.destination_kind
        AND applied.destination = sent.destination AND applied.message_id = sent.message_id
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
