-- Messages that died of failed deliveries; those whose time was over are nobody's failure.
WITH failed AS (
    SELECT directory, shown_id, min(position) AS since,
        arg_min(origin_kind, position) AS from_kind,
        arg_min(origin, position) AS from_name,
        arg_min((destination_kind, destination), position) AS grave
    FROM effects
    WHERE kind = 'add' AND NOT contains(lower(dead_letter_cause), 'expired')
    GROUP BY ALL
),
came AS (
    SELECT *, (destination_kind, destination) = grave AS is_dead,
        (destination_kind, destination) = (from_kind, from_name) AND position > since AS is_back
    FROM effects JOIN failed USING (directory, shown_id) WHERE kind IN ('add', 'update')
)
SELECT directory, from_kind AS origin_kind, from_name AS origin, shown_id AS message_id,
    max(redeliveries) AS redeliveries,
    count(*) FILTER (is_dead AND kind = 'add') AS dead_lettered,
    count(*) FILTER (is_back AND kind = 'add') AS retried,
    max(regexp_replace(producer_id, ':-?[0-9]+:-?[0-9]+$', '')) AS producer,
    arg_max(dead_letter_cause, position) FILTER (is_dead) AS cause,
    min(happened_at) FILTER (is_dead) AS first_at,
    max(happened_at) FILTER (is_dead) AS last_at
FROM came
GROUP BY ALL
ORDER BY dead_lettered DESC, redeliveries DESC NULLS LAST, directory, origin, shown_id
LIMIT 1000
