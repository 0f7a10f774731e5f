-- What came, left and died at each destination, and when: lines of statistics count at their
-- time, what they do not count (all, where there are none) when it happened.
WITH rest AS (
    SELECT effects.* FROM effects ANTI JOIN counted_ranges counts
    ON effects.directory = counts.directory AND position >= starts AND position <= ends
)
SELECT directory, destination_kind, destination, epoch_ms("at") // 1000 AS second,
    new_enqueued AS enqueued, new_dequeued AS dequeued, new_dead_lettered AS dead_lettered
FROM counted
UNION ALL BY NAME
SELECT directory, destination_kind, destination, epoch_ms(happened_at) // 1000 AS second,
    (kind = 'add')::BIGINT AS enqueued, (kind = 'remove')::BIGINT AS dequeued
FROM rest WHERE kind IN ('add', 'remove') AND happened_at IS NOT NULL
UNION ALL BY NAME
SELECT directory, origin_kind AS destination_kind, origin AS destination,
    epoch_ms(happened_at) // 1000 AS second, 1 AS dead_lettered
FROM rest
WHERE kind = 'add' AND dead_letter_cause IS NOT NULL AND happened_at IS NOT NULL
