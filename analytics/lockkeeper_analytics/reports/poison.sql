WITH came AS (
    SELECT *, (file_id, "offset") AS place,
        coalesce(regexp_extract(original_destination, '^[a-z-]+'), destination_kind) AS from_kind,
        coalesce(regexp_replace(original_destination, '^[a-z-]+://', ''), destination) AS from_name
    FROM messages WHERE outcome NOT IN ('rolled_back', 'open')
), first_death AS (
    SELECT directory, message_id, min(place) AS since,
        arg_min(from_kind, place) AS origin_kind,
        arg_min(from_name, place) AS origin,
        arg_min((destination_kind, destination), place) AS grave
    FROM came
    WHERE dead_letter_cause IS NOT NULL AND NOT contains(lower(dead_letter_cause), 'expired')
    GROUP BY ALL
)
SELECT directory, origin_kind, origin, message_id,
    max(redeliveries) AS redeliveries,
    count(*) FILTER ((destination_kind, destination) = grave) AS dead_lettered,
    count(*) FILTER ((destination_kind, destination) = (origin_kind, origin) AND place > since)
        AS retried,
    max(regexp_replace(producer_id, ':-?[0-9]+:-?[0-9]+$', '')) AS producer,
    arg_max(dead_letter_cause, place) FILTER ((destination_kind, destination) = grave) AS cause,
    min(added_earliest) FILTER ((destination_kind, destination) = grave) AS first_at,
    max(added_earliest) FILTER ((destination_kind, destination) = grave) AS last_at
FROM came JOIN first_death USING (directory, message_id)
GROUP BY ALL
ORDER BY dead_lettered DESC, redeliveries DESC NULLS LAST, directory, origin, message_id
LIMIT 1000
