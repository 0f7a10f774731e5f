-- One row for each data file, with what pins it.
WITH counts AS (
    SELECT directory, file_id, count(*) AS records,
        count_if(kind = 'add') AS adds, count_if(kind = 'remove') AS removes,
        min(dated(position, position, written_after)) FILTER (WHERE written_after IS NOT NULL)
            AS first,
        max(dated(position, position, coalesce(written_before, written_after)))
            FILTER (WHERE coalesce(written_before, written_after) IS NOT NULL) AS last
    FROM placed GROUP BY directory, file_id
),
pinned AS (
    SELECT directory, file_id,
        coalesce(sum(messages), 0) AS live_messages, coalesce(sum(bytes), 0) AS live_bytes,
        array_sort(array_agg(counted_of(owner, messages)) FILTER (WHERE what = 'messages'))
            AS owners,
        array_sort(array_agg(owner) FILTER (WHERE what = 'subscription')) AS subscriptions,
        array_sort(array_agg(owner) FILTER (WHERE what = 'transaction')) AS transactions
    FROM file_pins GROUP BY directory, file_id
),
staying AS (
    SELECT directory, file_id FROM kept_files WHERE cause IS NOT NULL
),
ending AS (
    SELECT file_references.directory, file_references.file_id, refers
    FROM file_references JOIN staying
        ON file_references.directory = staying.directory AND refers = staying.file_id
),
acknowledging AS (
    SELECT directory, file_id, array_sort(array_agg(CAST(refers AS BIGINT))) AS acknowledges
    FROM ending GROUP BY directory, file_id
),
words AS (
    SELECT directory, file_id, 1 AS place, '' AS owner, 0 AS other, 'it is being written' AS word
    FROM data_files WHERE is_current
    UNION ALL
    SELECT directory, file_id,
        CASE what WHEN 'messages' THEN 2 WHEN 'subscription' THEN 3 ELSE 4 END, owner, 0,
        CASE what WHEN 'messages' THEN CAST(messages AS STRING) || ' messages of ' || owner
            WHEN 'reason' THEN owner ELSE what || ' ' || owner END
    FROM file_pins
    UNION ALL
    SELECT directory, file_id, 5, '', refers,
        'acknowledges messages in file ' || CAST(refers AS STRING)
    FROM ending
),
listed AS (
    SELECT directory, file_id,
        row_number() OVER (
            PARTITION BY directory, file_id ORDER BY place, owner, other) AS number,
        array_agg(word) OVER (
            PARTITION BY directory, file_id ORDER BY place, owner, other
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS pins
    FROM words
),
told AS (
    SELECT data_files.*, NOT is_archived AND staying.file_id IS NULL AS freed_by_cleanup
    FROM data_files LEFT JOIN staying
        ON data_files.directory = staying.directory AND data_files.file_id = staying.file_id
)
SELECT directory, journals.broker, file_id, file, file_bytes, is_current, is_archived,
    coalesce(records, 0) AS records, coalesce(adds, 0) AS adds, coalesce(removes, 0) AS removes,
    first.moment AS first_at, last.moment AS last_at,
    CAST(coalesce(live_messages, 0) AS BIGINT) AS live_messages,
    CAST(coalesce(live_bytes, 0) AS BIGINT) AS live_bytes,
    CASE WHEN owners IS NULL THEN no_counts() ELSE map_from_entries(owners) END
        AS live_by_destination,
    coalesce(subscriptions, no_texts()) AS subscriptions,
    coalesce(transactions, no_texts()) AS transactions,
    coalesce(acknowledges, no_numbers()) AS acknowledges,
    CASE WHEN is_archived OR freed_by_cleanup OR pins IS NULL THEN no_texts() ELSE pins END
        AS pinned_by,
    freed_by_cleanup
FROM told
LEFT JOIN counts USING (directory, file_id)
LEFT JOIN pinned USING (directory, file_id)
LEFT JOIN acknowledging USING (directory, file_id)
LEFT JOIN (SELECT * FROM listed WHERE number = 1) lists USING (directory, file_id)
LEFT JOIN journals USING (directory)
ORDER BY directory, file_id
