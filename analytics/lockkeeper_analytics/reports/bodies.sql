-- Fields of sampled bodies. `share` is that of the bodies of the destination that have the format;
-- a body counts once for a field, whatever types the field has in it.
WITH summed AS (
    SELECT directory, destination_kind, destination, format, field, type, sum(messages) AS bodies
    FROM body_fields GROUP BY ALL
),
sampled AS (
    SELECT directory, destination_kind, destination, format, bodies AS sampled
    FROM summed WHERE field = '$' AND type IS NULL
)
SELECT directory, destination_kind, destination, format, field,
    array_join(array_sort(array_agg(type) FILTER (WHERE type IS NOT NULL)), ', ') AS types,
    max(CASE WHEN type IS NULL THEN bodies END) AS messages,
    max(CASE WHEN type IS NULL THEN bodies END) / sampled AS share
FROM summed JOIN sampled USING (directory, destination_kind, destination, format)
GROUP BY directory, destination_kind, destination, format, field, sampled
ORDER BY sampled DESC, directory, destination_kind, destination, format, field
