-- Messages by their size as it is stored, with the header, in classes that double. Dead letters
-- count where they came to.
WITH sized AS (
    SELECT directory, destination_kind, destination, message_bytes,
        CAST(pow(2, length(bin(greatest(message_bytes, 1))) - 1) AS BIGINT) AS at_least
    FROM applied_operations WHERE kind = 'add' AND message_bytes IS NOT NULL
        AND NOT is_of_streams(destination_kind, destination)
)
SELECT directory, destination_kind, destination, at_least, 2 * at_least AS below,
    count(*) AS messages,
    sum(message_bytes) AS bytes
FROM sized
GROUP BY directory, destination_kind, destination, at_least
ORDER BY at_least, directory, destination_kind, destination
