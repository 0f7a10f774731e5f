-- `bytes` is the length of a file that is not archived, `garbage_bytes` what of it is not the
-- records of live messages. `freed` tells that nothing keeps the file: the next clean-up removes
-- it. `frees_bytes` are the files, this one among them, that would go when nothing in this file
-- were live any more: what is live in one file keeps those that acknowledge messages in it, and
-- those that acknowledge messages in these. Null for files that nothing in them keeps, and for the
-- one being written.
WITH frees AS (
    SELECT directory, cause AS file_id, sum(file_bytes) AS frees_bytes
    FROM kept_files WHERE cause >= 0 GROUP BY directory, cause
),
words AS (
    SELECT directory, file_id, 1 AS place, '' AS owner, 0 AS other, 'it is being written' AS word
    FROM kept_files WHERE is_current
    UNION ALL
    SELECT directory, file_id,
        CASE what WHEN 'messages' THEN 2 WHEN 'subscription' THEN 3 ELSE 4 END, owner, 0,
        CASE what WHEN 'messages' THEN CAST(messages AS STRING) || ' messages of ' || owner
            WHEN 'reason' THEN owner ELSE what || ' ' || owner END
    FROM file_pins
    UNION ALL
    SELECT file_links.directory, file_links.file_id, 5, '', refers,
        'acknowledges messages in file ' || CAST(refers AS STRING)
    FROM file_links
    JOIN kept_files kept
        ON file_links.directory = kept.directory AND file_links.file_id = kept.file_id
    JOIN kept_files other ON file_links.directory = other.directory AND refers = other.file_id
    WHERE kept.cause IS NOT NULL AND other.cause IS NOT NULL
),
numbered AS (
    SELECT directory, file_id, word,
        row_number() OVER (
            PARTITION BY directory, file_id ORDER BY place, owner, other) AS number,
        count(*) OVER (PARTITION BY directory, file_id) AS words_there
    FROM words
),
lists AS (
    SELECT directory, file_id, number, words_there, array_agg(word) OVER (
            PARTITION BY directory, file_id ORDER BY number
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS list
    FROM numbered WHERE number <= 20
),
told AS (
    SELECT directory, file_id, array_join(list, '; ') || CASE WHEN words_there > 20
        THEN '; and ' || CAST(words_there - 20 AS STRING) || ' more' ELSE '' END AS pinned_by
    FROM lists WHERE number = 1
)
SELECT directory, file, file_bytes AS bytes, live_messages, live_bytes,
    file_bytes - live_bytes AS garbage_bytes,
    coalesce(pinned_by, '') AS pinned_by,
    cause IS NULL AS freed,
    CASE WHEN is_needed AND NOT is_current THEN coalesce(frees_bytes, 0) END AS frees_bytes
FROM kept_files
LEFT JOIN frees USING (directory, file_id)
LEFT JOIN told USING (directory, file_id)
ORDER BY directory, file_id
