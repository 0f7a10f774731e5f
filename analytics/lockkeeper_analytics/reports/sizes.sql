SELECT directory, destination_kind, destination,
    (2 ** (length(bin(greatest(message_bytes, 1))) - 1))::BIGINT AS at_least,
    2 * at_least AS below,
    count(*) AS messages,
    sum(message_bytes) AS bytes
FROM effects
WHERE kind = 'add' AND message_bytes IS NOT NULL
GROUP BY ALL
ORDER BY at_least, directory, destination_kind, destination
