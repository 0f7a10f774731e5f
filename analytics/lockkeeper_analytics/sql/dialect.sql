-- Spark's functions that the texts of views call, where DuckDB has them by another name.
CREATE MACRO array_join(list, separator) AS array_to_string(list, separator);
-- Of a text in UTF-8, four bits after the other, the lower ones of each byte first.
CREATE MACRO crc32(words) AS xor(4294967295, list_reduce(
    [4294967295] || [instr('123456789ABCDEF', hex(words)[place + 2 * (place % 2) - 1])::BIGINT
        FOR place IN range(1, length(hex(words)) + 1)],
    lambda sum, digit: xor(sum >> 4, [
        0, 498536548, 997073096, 651767980, 1994146192, 1802195444, 1303535960, 1342533948,
        3988292384, 4027552580, 3604390888, 3412177804, 2607071920, 2262029012, 2685067896,
        3183342108
    ][(xor(sum, digit) & 15) + 1])));
CREATE MACRO div(number, other) AS number // other;
CREATE MACRO explode(list) AS unnest(list);
CREATE MACRO "get"(list, place) AS list[place + 1];
CREATE MACRO hops_of(way) AS [{
    'before': array_to_string(way[:place - 1], chr(0)), 'source': way[place],
    'way': array_to_string(way[:place], chr(0)), 'target': way[place + 1]
} FOR place IN range(1, len(way) + 1)];
CREATE MACRO is_of_streams(kind, name)
    AS coalesce(kind = 'queue' AND name LIKE 'Lockkeeper.Stream.%', false);
CREATE MACRO milliseconds_between(moment, other) AS (epoch_us(other) - epoch_us(moment)) // 1000;
CREATE MACRO no_counts() AS map()::MAP(VARCHAR, BIGINT);
CREATE MACRO no_numbers() AS []::BIGINT[];
CREATE MACRO no_texts() AS []::VARCHAR[];
CREATE MACRO percentile_approx(number, share, accuracy) AS quantile_disc(number, share);
CREATE MACRO regexp_like(words, pattern) AS regexp_matches(words, pattern);
CREATE MACRO regexp_replace_all(words, pattern, other)
    AS regexp_replace(words, pattern, other, 'g');
-- Of the queue of a segment the number of its partition, its first offset, the stream; else nothing.
CREATE MACRO segment_part(name, part) AS regexp_extract(name,
    '^Lockkeeper[.]Stream[.](0|[1-9][0-9]{0,2}|10[01][0-9]|102[0-3])[.](0[0-4][0-9]{18})[.]((?s:.+))$',
    part);
CREATE MACRO sequence(first_one, last_one) AS generate_series(first_one, last_one),
    (first_one, last_one, step) AS generate_series(first_one, last_one, step);
CREATE MACRO shiftright(number, digits) AS number >> digits;
CREATE MACRO size(list) AS len(list);
CREATE MACRO timestamp_millis(number) AS make_timestamptz(number * 1000);
CREATE MACRO timestamp_seconds(number) AS make_timestamptz(number * 1000000);
CREATE MACRO unix_millis(moment) AS epoch_ms(moment);
CREATE MACRO unix_seconds(moment) AS epoch_ms(moment) // 1000;

-- Of steps of a way, those that are reached from the first; each tells the number of the next one.
CREATE MACRO followed(nexts) AS (
    WITH RECURSIVE reached AS (
        SELECT 1::BIGINT AS number
        UNION ALL
        SELECT nexts[number] FROM reached WHERE nexts[number] <= len(nexts)
    )
    SELECT list(number) FROM reached
);

-- What `file_causes` in facts/functions.py says: Spark has no recursion that ends in a circle.
CREATE MACRO file_causes(ids, needed, sources, targets) AS (
    WITH RECURSIVE links AS (SELECT unnest(sources) AS file_id, unnest(targets) AS refers),
    reached AS (
        SELECT unnest(needed) AS file_id, unnest(needed) AS cause
        UNION
        SELECT links.file_id, cause FROM links JOIN reached ON links.refers = reached.file_id
    ),
    causes AS (
        SELECT file_id, CASE WHEN count(*) = 1 THEN min(cause) ELSE -1 END AS cause
        FROM reached GROUP BY file_id
    )
    SELECT list(cause ORDER BY place)
    FROM (SELECT unnest(ids) AS file_id, generate_subscripts(ids, 1) AS place) asked
    LEFT JOIN causes USING (file_id)
);
