-- Messages that died of failed deliveries; those whose time was over are nobody's failure. A row is
-- of a message, where it was meant for and where it went: it may die in several queues.
-- `dead_lettered` counts how often it died there, `retried` how often it came back afterwards to
-- where it was meant for under its old id, as ActiveMQ's console sends it. The worst 1,000 are told.
WITH failed AS (
    SELECT directory, shown_id, origin_kind AS from_kind, origin AS from_name,
        destination_kind AS grave_kind, destination AS grave_name, min(position) AS since
    FROM deaths
    -- Both brokers say so in the cause of a message whose time was over.
    WHERE NOT contains(lower(dead_letter_cause), 'expired')
    GROUP BY directory, shown_id, origin_kind, origin, destination_kind, destination
),
came AS (
    SELECT applied.directory, applied.shown_id, from_kind, from_name, grave_kind, grave_name,
        kind, redeliveries, producer_id, dead_letter_cause, happened_at, position,
        destination_kind = grave_kind AND destination = grave_name
            AND origin_kind = from_kind AND origin = from_name AS is_dead,
        destination_kind = from_kind AND destination = from_name AS is_there,
        position > since AS is_later
    FROM applied_operations applied JOIN failed
        ON applied.directory = failed.directory AND applied.shown_id = failed.shown_id
    WHERE kind IN ('add', 'update')
)
SELECT directory, from_kind AS origin_kind, from_name AS origin, shown_id AS message_id,
    grave_name AS dead_letter_queue,
    max(redeliveries) AS redeliveries,
    count_if(is_dead AND kind = 'add') AS dead_lettered,
    count_if(is_there AND is_later AND kind = 'add') AS retried,
    max(regexp_replace(producer_id, ':-?[0-9]+:-?[0-9]+$', '')) AS producer,
    max_by(dead_letter_cause, position)
        FILTER (WHERE is_dead AND dead_letter_cause IS NOT NULL) AS cause,
    min(CASE WHEN is_dead THEN happened_at END) AS first_at,
    max(CASE WHEN is_dead THEN happened_at END) AS last_at
FROM came
WHERE is_dead OR is_there
GROUP BY directory, from_kind, from_name, shown_id, grave_kind, grave_name
ORDER BY dead_lettered DESC, redeliveries DESC NULLS LAST, directory, origin, message_id,
    dead_letter_queue
LIMIT 1000
