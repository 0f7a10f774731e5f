-- Messages that died of failed deliveries; those whose time was over are nobody's failure.
-- `dead_lettered` counts how often one died, `retried` how often it came back afterwards to where
-- it was meant for under its old id, as ActiveMQ's console sends it. The worst 1,000 are told.
WITH failed AS (
    SELECT directory, shown_id, min(position) AS since,
        min_by(origin_kind, position) AS from_kind,
        min_by(origin, position) AS from_name,
        min_by(destination_kind, position) AS grave_kind,
        min_by(destination, position) AS grave_name
    FROM applied_operations
    -- Both brokers say so in the cause of a message whose time was over.
    WHERE kind = 'add' AND NOT contains(lower(dead_letter_cause), 'expired')
    GROUP BY ALL
),
came AS (
    SELECT directory, shown_id, from_kind, from_name, kind, position, redeliveries, producer_id,
        dead_letter_cause, happened_at, grave_name,
        destination_kind = grave_kind AND destination = grave_name AS is_dead,
        destination_kind = from_kind AND destination = from_name AND position > since AS is_back
    FROM applied_operations JOIN failed USING (directory, shown_id) WHERE kind IN ('add', 'update')
)
SELECT directory, from_kind AS origin_kind, from_name AS origin, shown_id AS message_id,
    grave_name AS dead_letter_queue,
    max(redeliveries) AS redeliveries,
    count_if(is_dead AND kind = 'add') AS dead_lettered,
    count_if(is_back AND kind = 'add') AS retried,
    max(regexp_replace(producer_id, ':-?[0-9]+:-?[0-9]+$', '')) AS producer,
    max_by(dead_letter_cause, CASE WHEN is_dead THEN position END) AS cause,
    min(CASE WHEN is_dead THEN happened_at END) AS first_at,
    max(CASE WHEN is_dead THEN happened_at END) AS last_at
FROM came
GROUP BY directory, from_kind, from_name, shown_id, grave_name
ORDER BY dead_lettered DESC, redeliveries DESC NULLS LAST, directory, origin, message_id
LIMIT 1000
