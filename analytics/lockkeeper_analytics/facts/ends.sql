-- The last time that each journal tells of.
SELECT directory, max("at") AS end_at
FROM (
    SELECT directory, written_after AS "at" FROM records
    UNION ALL SELECT directory, "at" FROM statistics
    UNION ALL SELECT directory, "at" FROM events WHERE event IN ('start', 'takeover', 'stop')
)
GROUP BY ALL
