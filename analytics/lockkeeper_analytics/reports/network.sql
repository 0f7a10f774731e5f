-- One row for each pair of brokers that messages, or a bridge, lead from and to; without a
-- directory where a broker's journal is not given. `forwarded` is what events of bridges count
-- (of the receiving broker where the sending one tells none), `messages` those that came by what
-- records say: a message that was acknowledged before it was written is in none. `waiting` are
-- messages that came over the bridge and wait, `stranded` those among them in queues without
-- consumers. `source_waiting` and `target_waiting` are all that wait at the two brokers.
WITH crossed AS (
    SELECT left_one.directory AS source_directory,
        coalesce(left_one.broker, source) AS source,
        CASE WHEN target IS NULL THEN hops.directory ELSE next_one.directory END
            AS target_directory,
        CASE WHEN target IS NULL THEN here.broker ELSE coalesce(next_one.broker, target) END
            AS target,
        hops.destination_kind, hops.destination, message_id, way,
        CASE WHEN target IS NULL THEN stored_at END AS stored_at
    FROM hops
    LEFT JOIN broker_ids left_one ON hops.source = left_one.broker_id
    LEFT JOIN broker_ids next_one ON hops.target = next_one.broker_id
    LEFT JOIN broker_names here ON hops.directory = here.directory
),
came AS (
    SELECT source_directory, source, target_directory, target,
        count(*) AS messages, min(first_one) AS first_at, max(last_one) AS last_at
    FROM (
        SELECT source_directory, source, target_directory, target, destination_kind, destination,
            message_id, way, min(stored_at) AS first_one, max(stored_at) AS last_one
        FROM crossed GROUP BY ALL
    ) apart
    GROUP BY ALL
),
told AS (
    SELECT bridges.directory AS source_directory, here.broker AS source,
        other.directory AS target_directory, coalesce(other.broker, peer_id) AS target,
        bridge, forwarded, NULL AS received
    FROM bridges JOIN broker_names here ON bridges.directory = here.directory
    JOIN broker_ids other ON peer_id = broker_id
    WHERE direction <> 'in'
    UNION ALL
    SELECT other.directory, coalesce(other.broker, peer_id), bridges.directory, here.broker,
        bridge, NULL, received
    FROM bridges JOIN broker_names here ON bridges.directory = here.directory
    JOIN broker_ids other ON peer_id = broker_id
    WHERE direction <> 'out'
),
bridged AS (
    SELECT source_directory, source, target_directory, target,
        array_sort(array_agg(DISTINCT bridge)) AS bridges,
        CAST(coalesce(sum(forwarded), sum(received)) AS BIGINT) AS forwarded
    FROM told GROUP BY ALL
),
held AS (
    SELECT DISTINCT directory, destination_kind, destination, located
    FROM message_lifetimes
    WHERE ended IS NULL AND NOT hidden AND NOT is_of_streams(destination_kind, destination)
),
left_over AS (
    SELECT held.directory, get(broker_path, size(broker_path) - 1) AS source,
        count(*) AS waiting, count(unattended.destination) AS stranded
    FROM held JOIN (SELECT * FROM placed WHERE broker_path IS NOT NULL) said
        ON held.directory = said.directory AND located = position
    LEFT JOIN unattended
        ON held.directory = unattended.directory
        AND held.destination_kind = unattended.destination_kind
        AND held.destination = unattended.destination
        AND held.destination_kind LIKE '%queue'
    GROUP BY ALL
),
stays AS (
    SELECT left_one.directory AS source_directory, coalesce(left_one.broker, source) AS source,
        left_over.directory AS target_directory, here.broker AS target,
        sum(waiting) AS waiting, sum(stranded) AS stranded
    FROM left_over JOIN broker_ids left_one ON source = broker_id
    JOIN broker_names here ON left_over.directory = here.directory
    GROUP BY ALL
),
everything AS (
    SELECT directory, count(*) AS waiting FROM held GROUP BY directory
),
pairs AS (
    SELECT source_directory, source, target_directory, target, max(bridges) AS bridges,
        max(forwarded) AS forwarded, sum(messages) AS messages, sum(waiting) AS waiting,
        sum(stranded) AS stranded, min(first_at) AS first_at, max(last_at) AS last_at
    FROM (
        SELECT source_directory, source, target_directory, target, bridges, forwarded,
            0 AS messages, 0 AS waiting, 0 AS stranded, NULL AS first_at, NULL AS last_at
        FROM bridged
        UNION ALL
        SELECT source_directory, source, target_directory, target, NULL, NULL,
            messages, 0, 0, first_at, last_at
        FROM came
        UNION ALL
        SELECT source_directory, source, target_directory, target, NULL, NULL,
            0, waiting, stranded, NULL, NULL
        FROM stays
    ) told
    GROUP BY source_directory, source, target_directory, target
)
SELECT source_directory, source, target_directory, target,
    coalesce(bridges, no_texts()) AS bridges, forwarded,
    CAST(messages AS BIGINT) AS messages,
    CAST(pairs.waiting AS BIGINT) AS waiting,
    CAST(stranded AS BIGINT) AS stranded,
    first_at, last_at,
    CASE WHEN source_directory IS NOT NULL THEN coalesce(near.waiting, 0) END AS source_waiting,
    CASE WHEN target_directory IS NOT NULL THEN coalesce(far.waiting, 0) END AS target_waiting
FROM pairs
LEFT JOIN everything near ON source_directory = near.directory
LEFT JOIN everything far ON target_directory = far.directory
ORDER BY messages DESC, forwarded DESC NULLS LAST, source, target, source_directory,
    target_directory
