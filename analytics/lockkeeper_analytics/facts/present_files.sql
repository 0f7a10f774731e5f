-- The data files that are not archived: those with records, and the one being written. What came
-- since the records were read says nothing.
SELECT files.directory, files.file_id, file, file_bytes, is_current
FROM files
LEFT JOIN (SELECT DISTINCT directory, file_id FROM records) seen
    ON files.directory = seen.directory AND files.file_id = seen.file_id
WHERE NOT is_archived AND (is_current OR seen.file_id IS NOT NULL)
