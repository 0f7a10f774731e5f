SELECT directory, destination_kind, destination,
    max(regexp_replace(producer_id, ':-?[0-9]+:-?[0-9]+$', '')) AS producer,
    message_id,
    count(*) AS stored,
    CASE WHEN destination_kind LIKE '%queue'
        THEN count(*) FILTER (outcome <> 'duplicate') - 1 END AS processed_again,
    min(stored_at) AS first_at,
    max(stored_at) AS last_at
FROM messages
WHERE original_destination IS NULL AND outcome NOT IN ('rolled_back', 'open')
    AND (outcome <> 'in_doubt' OR transaction IS NULL OR transaction NOT IN (
        SELECT transaction FROM transactions WHERE outcome = 'prepared'))
GROUP BY directory, destination_kind, destination, message_id
HAVING count(*) > 1
ORDER BY stored DESC, directory, destination_kind, destination, message_id
LIMIT 1000
