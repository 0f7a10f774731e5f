-- The cell of time in which each journal ends: how many `seconds` it has, and when it begins, `last`.
-- What waits at the end of the journal waits until then, whatever the last records tell of.
SELECT directory, seconds, div(unix_seconds(end_at), seconds) * seconds AS last
FROM (SELECT ends.*, (SELECT seconds FROM cells) AS seconds FROM ends) told
