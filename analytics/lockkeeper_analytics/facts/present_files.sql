-- The data files that are not archived, as they were before the records were read: what is written
-- since then goes to the last of them, or into one that is not here.
SELECT directory, file_id, file, file_bytes, is_current
FROM data_files
WHERE NOT is_archived
