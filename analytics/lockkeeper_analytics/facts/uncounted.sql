-- What came to be without being counted by statistics: all of it, where there are none. Streams are
-- not among it: they have reports of their own.
SELECT /*+ BROADCAST(counted_ranges) */ applied.*
FROM applied_operations applied ANTI JOIN counted_ranges
    ON applied.directory = counted_ranges.directory AND position >= starts AND position <= stops
WHERE NOT is_of_streams(destination_kind, destination)
