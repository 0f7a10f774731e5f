-- What the last opening of each connection told.
SELECT directory, connection_id, client_id, user_name, address
FROM (
    SELECT directory, connection_id, client_id, user_name, address,
        row_number() OVER (
            PARTITION BY directory, connection_id ORDER BY position DESC) AS number
    FROM client_events WHERE event = 'connectionOpened'
) opened
WHERE number = 1
