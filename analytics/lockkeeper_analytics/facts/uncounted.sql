-- What came to be without being counted by statistics: all of it, where there are none.
SELECT /*+ BROADCAST(counted_ranges) */ effects.*
FROM effects ANTI JOIN counted_ranges
    ON effects.directory = counted_ranges.directory AND position >= starts AND position <= stops
