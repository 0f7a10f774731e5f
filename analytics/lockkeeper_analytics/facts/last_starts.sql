-- Where the last start of each journal's broker is: of those before, no connection is left.
SELECT directory, max(position) AS started FROM broker_events WHERE is_start GROUP BY ALL
