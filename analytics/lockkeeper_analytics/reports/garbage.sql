-- `frees_bytes` are the files that nothing else keeps: what is live in one file keeps those that
-- acknowledge messages in it, and those that acknowledge messages in these.
WITH RECURSIVE there AS (
    SELECT *, NOT freed_by_cleanup AND (is_current OR live_messages > 0
        OR len(subscriptions) > 0 OR len(transactions) > 0) AS is_needed
    FROM files WHERE NOT is_archived AND (records > 0 OR is_current)
),
links AS (
    SELECT directory, file_id, unnest(acknowledges) AS refers FROM there WHERE NOT freed_by_cleanup
),
reached AS (
    SELECT directory, file_id, file_id AS cause FROM there WHERE is_needed
    UNION
    SELECT links.directory, links.file_id, cause
    FROM links JOIN reached
        ON links.directory = reached.directory AND links.refers = reached.file_id
),
alone AS (
    SELECT directory, file_id, min(cause) AS cause
    FROM reached GROUP BY ALL HAVING count(DISTINCT cause) = 1
),
frees AS (
    SELECT directory, cause AS file_id, sum(file_bytes) AS frees_bytes
    FROM alone JOIN there USING (directory, file_id) GROUP BY ALL
),
worded AS (
    SELECT *,
        if(is_current, ['it is being written'], [])
            || list_transform(list_sort(map_entries(live_by_destination)),
                lambda each: each.value || ' messages of ' || each.key)
            || list_transform(list_sort(subscriptions), lambda each: 'subscription ' || each)
            || list_transform(list_sort(transactions), lambda each: 'transaction ' || each)
            || list_transform(list_sort(acknowledges),
                lambda each: 'acknowledges messages in file ' || each) AS words
    FROM there
)
SELECT directory, file, file_bytes AS bytes, live_messages, live_bytes,
    file_bytes - live_bytes AS garbage_bytes,
    if(freed_by_cleanup, '', array_to_string(words[:20], '; ')
        || if(len(words) > 20, '; and ' || (len(words) - 20) || ' more', '')) AS pinned_by,
    freed_by_cleanup AS freed,
    if(is_needed AND NOT is_current, coalesce(frees_bytes, 0), NULL) AS frees_bytes
FROM worded LEFT JOIN frees USING (directory, file_id)
ORDER BY directory, file_id
