-- Causes that differ only in a message id count as one; it ends at a comma, a bracket or a space.
WITH dead AS (
    SELECT directory, origin_kind, origin, destination AS dead_letter_queue,
        regexp_replace_all(dead_letter_cause,
            'ID:[^],}) ' || chr(9) || chr(10) || chr(11) || chr(12) || chr(13) || ']+', 'ID:…')
            AS cause,
        redeliveries, happened_at, shown_id, position
    FROM deaths
)
SELECT directory, origin_kind, origin, dead_letter_queue, cause,
    count(*) AS messages,
    max(redeliveries) AS redeliveries,
    min(happened_at) AS first_at,
    max(happened_at) AS last_at,
    min_by(shown_id, position) AS example
FROM dead
GROUP BY directory, origin_kind, origin, dead_letter_queue, cause
ORDER BY messages DESC, directory, origin, cause
