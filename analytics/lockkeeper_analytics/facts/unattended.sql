-- Destinations that had no consumer by the last figures of the broker's last run.
SELECT directory, destination_kind, destination
FROM (
    SELECT directory, destination_kind, destination, consumers,
        CAST(file_id AS BIGINT) * 4294967296 + statistics.offset AS position
    FROM statistics
) figures LEFT JOIN last_starts USING (directory)
WHERE position > coalesce(started, -1)
GROUP BY directory, destination_kind, destination
HAVING max_by(consumers, position) FILTER (WHERE consumers IS NOT NULL) = 0
