-- The positions that the statistics of each run of a broker count.
SELECT directory, coalesce(run_position, 0) AS starts, max(position) AS stops
FROM counted GROUP BY ALL
