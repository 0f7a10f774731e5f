-- What each journal's broker is called: as its last event tells, else as its directory is.
SELECT journals.directory,
    coalesce(named, regexp_extract(journals.directory, '(?:broker=)?([^/]+)/*$', 1)) AS broker
FROM journals LEFT JOIN (
    SELECT directory, max_by(broker_name, position) AS named FROM broker_events GROUP BY directory
) told ON journals.directory = told.directory
