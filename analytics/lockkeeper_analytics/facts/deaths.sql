-- Every death of a message, by the add of its letter. Two of three signs tell it from a letter that
-- somebody moved: it had not come to where it was with this cause, it came from no dead letter
-- queue, it went to one. Each alone may mislead: a message that was sent back dies of the same cause
-- again, a letter in a dead letter queue may die there of another one, the record of a death may be
-- gone, and any queue may be somebody's dead letter queue.
SELECT adds.*
FROM dead_letter_adds adds
LEFT JOIN dead_letter_queues sources
    ON adds.directory = sources.directory AND origin_kind = sources.destination_kind
    AND origin = sources.destination
LEFT JOIN dead_letter_queues targets
    ON adds.directory = targets.directory AND adds.destination_kind = targets.destination_kind
    AND adds.destination = targets.destination
WHERE CASE WHEN is_moved THEN 0 ELSE 1 END
    + CASE WHEN sources.destination IS NULL THEN 1 ELSE 0 END
    + CASE WHEN targets.destination IS NULL THEN 0 ELSE 1 END >= 2
