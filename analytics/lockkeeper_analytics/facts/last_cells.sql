-- The cell of time in which each journal ends, at `end_at`: how many `seconds` it has, and when it
-- begins, `last`. What waits at the end of the journal waits until then, whatever the last records
-- tell of.
SELECT directory, seconds, div(unix_seconds(last_at), seconds) * seconds AS last, last_at AS end_at
FROM (SELECT extents.*, (SELECT seconds FROM cells) AS seconds FROM extents) told
