-- Records with their `position`, which orders a directory: file number, then offset.
SELECT records.*, CAST(file_id AS BIGINT) * 4294967296 + records.offset AS position
FROM records
