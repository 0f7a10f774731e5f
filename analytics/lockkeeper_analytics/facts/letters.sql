-- Every record that holds a dead letter where it died into, and none of one that somebody moved. Two
-- of three signs tell these apart: it is not `is_moved`, it came from no dead letter queue, it went to
-- one. Each alone may mislead: a message that was sent back dies of the same cause again, a letter in
-- a dead letter queue may die there of another one, the record of a death may be gone, and any queue
-- may be somebody's dead letter queue.
SELECT held.*
FROM dead_letter_records held
LEFT JOIN dead_letter_queues sources
    ON held.directory = sources.directory AND origin_kind = sources.destination_kind
    AND origin = sources.destination
LEFT JOIN dead_letter_queues targets
    ON held.directory = targets.directory AND held.destination_kind = targets.destination_kind
    AND held.destination = targets.destination
WHERE CASE WHEN is_moved THEN 0 ELSE 1 END
    + CASE WHEN sources.destination IS NULL THEN 1 ELSE 0 END
    + CASE WHEN targets.destination IS NULL THEN 0 ELSE 1 END >= 2
