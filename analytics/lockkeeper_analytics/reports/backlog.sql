-- Messages of queues, and of topics once for each subscription that was there before them. What a
-- prepared transaction consumes is in doubt: nobody gets it.
WITH purged AS (
    SELECT directory, destination_kind, destination, max(position) AS cleared
    FROM effects WHERE kind = 'remove_destination' GROUP BY ALL
),
live AS (
    SELECT effects.*
    FROM effects LEFT JOIN purged USING (directory, destination_kind, destination)
    WHERE position > coalesce(cleared, -1)
),
added AS (
    SELECT * EXCLUDE (subscription) FROM live WHERE kind IN ('add', 'update')
    QUALIFY row_number() OVER (
        PARTITION BY directory, destination_kind, destination, message_id ORDER BY position DESC
    ) = 1
),
removed AS (
    SELECT directory, destination_kind, destination, message_id, subscription,
        max(position) FILTER (kind = 'remove') AS removed,
        bool_or(kind = 'prepared_remove') AS hidden
    FROM live WHERE kind IN ('remove', 'prepared_remove') GROUP BY ALL
),
subscribed AS (
    SELECT directory, destination_kind, destination, subscription,
        max(position) AS since, arg_max(kind, position) AS latest
    FROM live WHERE kind IN ('subscribe', 'unsubscribe') GROUP BY ALL HAVING latest = 'subscribe'
),
wanted AS (
    SELECT *, NULL AS subscription FROM added WHERE destination_kind LIKE '%queue'
    UNION ALL BY NAME
    SELECT added.*, subscribed.subscription
    FROM added JOIN subscribed USING (directory, destination_kind, destination)
    WHERE destination_kind LIKE '%topic' AND position > since
),
held AS (
    SELECT wanted.*, coalesce(hidden, false) AS hidden
    FROM wanted LEFT JOIN removed
        ON (wanted.directory, wanted.destination_kind, wanted.destination, wanted.message_id)
            = (removed.directory, removed.destination_kind, removed.destination,
                removed.message_id)
        AND wanted.subscription IS NOT DISTINCT FROM removed.subscription
    WHERE removed.removed IS NULL OR (removed.removed < position AND wanted.subscription IS NULL)
)
SELECT directory, destination_kind, destination, subscription,
    count(*) FILTER (NOT hidden) AS waiting,
    coalesce(sum(message_bytes) FILTER (NOT hidden), 0) AS bytes,
    count(*) FILTER (NOT hidden AND dead_letter_cause IS NOT NULL) AS dead_letters,
    count(*) FILTER (hidden) AS in_doubt,
    min(stored_at) AS oldest_at,
    max(stored_at) AS newest_at
FROM held
GROUP BY ALL
ORDER BY waiting DESC, directory, destination_kind, destination, subscription
