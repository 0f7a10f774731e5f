-- `redelivered` counts messages given back to their queue, `dispatched` all deliveries: both are
-- told by statistics alone. `marked` are messages that the journal holds with a redelivery counter,
-- dead letters mostly, `highest` the highest of these. A dead letter is counted where it was meant
-- for, all else where it is: the copies of a virtual topic name that topic.
WITH told AS (
    SELECT directory, destination_kind, destination,
        sum(new_redelivered) AS redelivered, sum(new_dispatched) AS dispatched
    FROM counted GROUP BY ALL
),
marked AS (
    SELECT directory, redeliveries,
        CASE WHEN dead_letter_cause IS NULL THEN destination_kind ELSE origin_kind END AS kind,
        CASE WHEN dead_letter_cause IS NULL THEN destination ELSE origin END AS name
    FROM applied_operations WHERE redeliveries > 0 AND kind IN ('add', 'update')
        AND NOT is_of_streams(destination_kind, destination)
),
marks AS (
    SELECT directory, kind AS destination_kind, name AS destination,
        count(*) AS marked, max(redeliveries) AS highest
    FROM marked GROUP BY directory, kind, name
)
SELECT directory, destination_kind, destination, redelivered, dispatched, marked, highest
FROM told FULL JOIN marks USING (directory, destination_kind, destination)
WHERE redelivered > 0 OR marked > 0
ORDER BY redelivered DESC NULLS LAST, marked DESC NULLS LAST,
    directory, destination_kind, destination
