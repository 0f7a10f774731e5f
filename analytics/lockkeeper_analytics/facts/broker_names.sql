-- What each journal's broker is called: as the last event tells that names it, else as its
-- directory is.
SELECT journals.directory,
    coalesce(named, regexp_extract(journals.directory, '(?:broker=)?([^/]+)/*$', 1)) AS broker
FROM journals LEFT JOIN (
    SELECT directory, max_by(broker_name, position) FILTER (WHERE broker_name IS NOT NULL) AS named
    FROM broker_events GROUP BY directory
) told ON journals.directory = told.directory
