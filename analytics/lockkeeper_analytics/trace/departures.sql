-- How messages with these ids left brokers by bridges: where each had come by then, having left the
-- brokers `before`, and to which ones it went; `stored_at` is when it was seen next.
SELECT source_directory, source, from_broker, destination_kind, destination, message_id, before,
    min(stored_at) AS stored_at,
    array_join(array_sort(array_agg(DISTINCT to_broker)), ', ') AS to_broker,
    array_join(array_sort(array_agg(DISTINCT bridge) FILTER (WHERE bridge IS NOT NULL)), ', ')
        AS bridge
FROM {ways}
GROUP BY source_directory, source, from_broker, destination_kind, destination, message_id, before
