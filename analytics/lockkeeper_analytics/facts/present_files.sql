-- The data files that are not archived: those with records, and the one being written. What came
-- since the records were read says nothing.
SELECT data_files.directory, data_files.file_id, file, file_bytes, is_current
FROM data_files
LEFT JOIN (SELECT DISTINCT directory, file_id FROM records) seen
    ON data_files.directory = seen.directory AND data_files.file_id = seen.file_id
WHERE NOT is_archived AND (is_current OR seen.file_id IS NOT NULL)
