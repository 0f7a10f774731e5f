-- The bridges that journals tell of, one row for each connection: which way messages go over it,
-- seen from the journal's broker, and how many the last event counted.
SELECT directory, connection_id, max(bridge) AS bridge, max(direction) AS direction,
    max(peer_id) AS peer_id, max(forwarded) AS forwarded, max(received) AS received
FROM events
WHERE event IN ('bridgeStarted', 'bridgeCounted', 'connectionClosed')
GROUP BY directory, connection_id
HAVING max(peer_id) IS NOT NULL
