-- What of `file_references` is between files that are there: one stays as long as the other does.
SELECT file_references.directory, file_references.file_id, refers
FROM file_references
JOIN present_files ON file_references.directory = present_files.directory
    AND file_references.file_id = present_files.file_id
JOIN present_files referred ON file_references.directory = referred.directory
    AND refers = referred.file_id
