-- What groups could not consume: `retries` are messages that came again to `%RETRY%GROUP`, `highest`
-- is how often one had been given back at most, `waiting` what the group has not consumed of them;
-- `dead_letters` came to `%DLQ%GROUP`, `kept` are those that are there still.
WITH given_back AS (
    SELECT directory, substr(stream, 8) AS consumer_group, 'retry' AS what, stored, stored_at,
        is_kept
    FROM stream_entries WHERE substr(stream, 1, 7) = '%RETRY%'
    UNION ALL
    SELECT directory, substr(stream, 6), 'dead', stored, stored_at, is_kept
    FROM stream_entries WHERE substr(stream, 1, 5) = '%DLQ%'
),
said AS (
    SELECT given_back.*, redeliveries
    FROM given_back JOIN applied_operations
        ON given_back.directory = applied_operations.directory
        AND stored = record_position
),
summed AS (
    SELECT directory, consumer_group,
        count_if(what = 'retry') AS retries,
        max(CASE WHEN what = 'retry' THEN redeliveries END) AS highest,
        count_if(what = 'dead') AS dead_letters,
        count_if(what = 'dead' AND is_kept) AS kept,
        min(said.stored_at) AS first_at,
        max(said.stored_at) AS last_at
    FROM said GROUP BY directory, consumer_group
),
behind AS (
    SELECT directory, consumer_group, sum(waiting) AS waiting
    FROM groups_report WHERE stream = '%RETRY%' || consumer_group
    GROUP BY directory, consumer_group
)
SELECT directory, consumer_group, retries, highest,
    CAST(coalesce(waiting, 0) AS BIGINT) AS waiting, dead_letters, kept, first_at, last_at
FROM summed LEFT JOIN behind USING (directory, consumer_group)
ORDER BY dead_letters DESC, retries DESC, directory, consumer_group
