-- The data files that are there, and of each the `cause` that keeps it: the number of one file, its
-- own perhaps; -1 for several, null: nothing does, and the next clean-up removes it.
WITH pinned AS (
    SELECT directory, file_id, sum(messages) AS live_messages, sum(bytes) AS live_bytes
    FROM file_pins GROUP BY directory, file_id
),
known AS (
    SELECT directory, file_id, file, file_bytes, is_current,
        coalesce(live_messages, 0) AS live_messages, coalesce(live_bytes, 0) AS live_bytes,
        is_current OR live_messages IS NOT NULL AS is_needed
    FROM present_files LEFT JOIN pinned USING (directory, file_id)
),
graphs AS (
    SELECT directory, ids, file_causes(ids, needed, sources, targets) AS causes
    FROM (
        SELECT directory, array_agg(file_id) AS ids,
            array_agg(file_id) FILTER (WHERE is_needed) AS needed
        FROM known GROUP BY directory
    ) nodes
    LEFT JOIN (
        SELECT directory, array_agg(file_id) AS sources, array_agg(refers) AS targets
        FROM file_links GROUP BY directory
    ) edges USING (directory)
),
numbers AS (
    SELECT directory, ids, causes, explode(sequence(0, size(ids) - 1)) AS number FROM graphs
)
SELECT known.directory, known.file_id, file, file_bytes, is_current, live_messages, live_bytes,
    is_needed, get(causes, number) AS cause
FROM numbers JOIN known
    ON numbers.directory = known.directory AND get(ids, number) = known.file_id
