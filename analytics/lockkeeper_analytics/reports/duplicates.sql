-- Messages that a producer stored several times; the 1,000 most frequent. What an operator moved is
-- no sending. `processed_again` counts those that came when the message had ended before, so that a
-- consumer got it again; for the others a replay keeps one. Of topics each subscription has its
-- own, so there nobody can say that a message was processed again.
WITH sent AS (
    SELECT directory, destination_kind, destination, message_id,
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
        CASE WHEN kind = 'add' AND original_destination IS NULL THEN producer_id END AS producer_id,
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
    SELECT directory, destination_kind, destination, message_id,
        count_if(kind = 'add' AND before = 'remove') AS times,
        max(regexp_replace(producer_id, ':-?[0-9]+:-?[0-9]+$', '')) AS producer
    FROM steps GROUP BY directory, destination_kind, destination, message_id
)
SELECT directory, destination_kind, destination, producer, message_id, stored,
    CASE WHEN destination_kind LIKE '%queue' THEN times END AS processed_again,
    first_at, last_at
FROM sent JOIN again USING (directory, destination_kind, destination, message_id)
ORDER BY stored DESC, directory, destination_kind, destination, message_id
