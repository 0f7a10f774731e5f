-- Records and bytes of each kind; `first_at` and `last_at` are the earliest and latest times known.
SELECT directory, kind,
    count(*) AS records,
    sum(record_bytes) AS bytes,
    count(DISTINCT file_id) AS files,
    min(coalesce(written_after, written_before)) AS first_at,
    max(written_after) AS last_at
FROM records
GROUP BY directory, kind
ORDER BY directory, records DESC, kind
