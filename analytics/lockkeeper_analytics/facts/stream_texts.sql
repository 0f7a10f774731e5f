-- Texts that streams keep of groups and of declared streams, by their place: since when each counts
-- (`added`), and where it was taken away; null: it is there.
SELECT directory, stored AS position, added, ended, ended_at
FROM message_lifetimes
WHERE destination_kind = 'queue' AND destination = 'Lockkeeper.Stream.States'
