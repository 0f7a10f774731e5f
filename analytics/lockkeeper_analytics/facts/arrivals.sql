-- Every add and update that counts, and what it is: it `begins` the stay of a message, or it is one
-- of `later_arrivals`.
SELECT applied.*, 'begins' AS arrival
FROM applied_operations applied SEMI JOIN message_lifetimes lives
    ON applied.directory = lives.directory AND record_position = stored
WHERE kind IN ('add', 'update')
UNION ALL
SELECT * FROM later_arrivals
