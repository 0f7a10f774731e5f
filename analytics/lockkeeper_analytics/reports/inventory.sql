SELECT directory, kind,
    count(*) AS records,
    sum(record_bytes) AS bytes,
    count(DISTINCT file_id) AS files,
    min(coalesce(written_after, written_before)) AS first_at,
    max(written_after) AS last_at
FROM records
GROUP BY ALL
ORDER BY directory, records DESC, kind
