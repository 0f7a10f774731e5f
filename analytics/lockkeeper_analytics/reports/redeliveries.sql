-- `redelivered` counts messages given back to their queue, `dispatched` all deliveries: both are
-- told by statistics alone. `marked` are messages that the journal holds with a redelivery counter,
-- dead letters mostly, `highest` the highest of these. What lies in a dead letter queue is counted
-- where it was meant for, all else where it is: the copies of a virtual topic name that topic.
WITH told AS (
    SELECT directory, destination_kind, destination,
        sum(new_redelivered) AS redelivered, sum(new_dispatched) AS dispatched
    FROM counted GROUP BY ALL
),
placed_marks AS (
    SELECT applied.*,
        dead_letter_cause IS NOT NULL AND queues.destination IS NOT NULL AS is_letter
    FROM applied_operations applied LEFT JOIN dead_letter_queues queues
        ON applied.directory = queues.directory
        AND applied.destination_kind = queues.destination_kind
        AND applied.destination = queues.destination
    WHERE redeliveries > 0 AND kind IN ('add', 'update')
),
marked AS (
    SELECT directory, redeliveries,
        CASE WHEN is_letter THEN origin_kind ELSE destination_kind END AS kind,
        CASE WHEN is_letter THEN origin ELSE destination END AS name
    FROM placed_marks WHERE NOT is_of_streams(destination_kind, destination)
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
