-- `redelivered` counts messages given back to their queue, `dispatched` all deliveries: both are
-- told by statistics alone. `marked` are messages that the journal holds with a redelivery counter,
-- dead letters mostly, `highest` the highest of these.
WITH told AS (
    SELECT directory, destination_kind, destination,
        sum(new_redelivered) AS redelivered, sum(new_dispatched) AS dispatched
    FROM counted GROUP BY ALL
),
marks AS (
    SELECT directory, origin_kind AS destination_kind, origin AS destination,
        count(*) AS marked, max(redeliveries) AS highest
    FROM applied_operations WHERE redeliveries > 0 AND kind IN ('add', 'update')
        AND NOT is_of_streams(destination_kind, destination)
    GROUP BY ALL
)
SELECT directory, destination_kind, destination, redelivered, dispatched, marked, highest
FROM told FULL JOIN marks USING (directory, destination_kind, destination)
WHERE redelivered > 0 OR marked > 0
ORDER BY redelivered DESC NULLS LAST, marked DESC NULLS LAST,
    directory, destination_kind, destination
