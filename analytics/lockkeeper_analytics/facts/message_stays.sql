-- Every message's stay at its destination, from its add (`stored`, which counted at `added`) until
-- nobody waited for it any more, `ended` by `ender`: null while it is there. `in_doubt` tells that a
-- prepared transaction consumes it; `waiting_for` are the durable subscriptions that still want it.
SELECT directory, destination_kind, destination, message_id, added, stored, located, record_bytes,
    message_bytes, ended, ender, ended_after, ended_before, end_kind,
    hidden AS in_doubt, no_texts() AS waiting_for
FROM message_lifetimes WHERE destination_kind LIKE '%queue'
UNION ALL
SELECT directory, destination_kind, destination, message_id, added, stored, located, record_bytes,
    message_bytes, over.position, over.record_position, over.happened_after, over.happened_before,
    over.kind, in_doubt, waiting_for
FROM (
    SELECT directory, destination_kind, destination, message_id, added, stored, located,
        record_bytes, message_bytes,
        CASE WHEN count(*) = count(ended) THEN
            max(step(ended, ender, ended_at, ended_after, ended_before, end_kind)) END AS over,
        count(*) > count(ended) AND count_if(ended IS NULL AND NOT hidden) = 0 AS in_doubt,
        coalesce(array_sort(array_agg(subscription) FILTER (WHERE ended IS NULL AND NOT hidden)),
            no_texts()) AS waiting_for
    FROM message_lifetimes WHERE destination_kind LIKE '%topic'
    GROUP BY directory, destination_kind, destination, message_id, added, stored, located,
        record_bytes, message_bytes
) joined
