-- The last time that each journal tells of.
SELECT directory, max(moment) AS end_at
FROM (
    SELECT directory, written_after AS moment FROM records
    UNION ALL SELECT directory, statistics.at FROM statistics
    UNION ALL SELECT directory, broker_events.at FROM broker_events
) told
GROUP BY ALL
