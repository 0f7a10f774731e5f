-- What lies between two removals of a destination, `begins` and `purged`, the latter as the step
-- `purge`, too; behind the last one without an end.
WITH purges AS (
    SELECT directory, destination_kind, destination, position,
        step(position, record_position, happened_at, happened_after, happened_before, kind)
            AS purge
    FROM applied_operations WHERE kind = 'remove_destination'
)
SELECT directory, destination_kind, destination,
    coalesce(lag(position) OVER (
        PARTITION BY directory, destination_kind, destination ORDER BY position), -1) AS begins,
    position AS purged, purge
FROM purges
UNION ALL
SELECT directory, destination_kind, destination, max(position), NULL, NULL
FROM purges GROUP BY directory, destination_kind, destination
