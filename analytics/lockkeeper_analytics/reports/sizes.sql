SELECT directory, destination_kind, destination,
    (2 ** (length(bin(greatest(message_bytes, 1))) - 1))::BIGINT AS at_least,
    2 * at_least AS below,
    count(*) AS messages,
    sum(message_bytes) AS bytes
FROM messages
WHERE outcome NOT IN ('rolled_back', 'open')
    AND (outcome <> 'in_doubt' OR transaction IS NULL OR transaction NOT IN (
        SELECT transaction FROM transactions WHERE outcome = 'prepared'))
GROUP BY ALL
ORDER BY directory, destination_kind, destination, at_least
