-- Causes that differ only in a message id count as one.
SELECT directory, origin_kind, origin, destination AS dead_letter_queue,
    regexp_replace(dead_letter_cause, 'ID:[^\s,\]\}\)]+', 'ID:…', 'g') AS cause,
    count(*) AS messages,
    max(redeliveries) AS redeliveries,
    min(happened_at) AS first_at,
    max(happened_at) AS last_at,
    arg_min(shown_id, position) AS example
FROM effects
WHERE kind = 'add' AND dead_letter_cause IS NOT NULL
GROUP BY ALL
ORDER BY messages DESC, directory, origin, cause
