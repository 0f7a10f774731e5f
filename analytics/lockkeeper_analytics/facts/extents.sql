-- The first and the last moment that each journal tells of. What was written between two times
-- counts at the likeliest, which may be behind the last time that is told.
SELECT directory, min(moment) AS first_at, max(moment) AS last_at
FROM (
    SELECT directory, happened_at AS moment FROM applied_operations
    UNION ALL
    SELECT directory, statistics.at FROM statistics
    UNION ALL
    SELECT directory, end_at FROM ends
) told
GROUP BY directory
