-- The time, by the earlier of two clocks: a database's that jumps ahead must not expire every key.
-- As in all statements whose time comes back as a parameter, it is text as JSON has it. In the styles of
-- DateStyle a zone's abbreviation may be read as another zone's.
-- $1 the worker's own clock, seconds since 1970. $2 seconds by which a database's may be ahead of it. One
-- row.
SELECT to_json(CASE WHEN now() > to_timestamp($1::float8 + $2) THEN to_timestamp($1) ELSE now() END) #>> '{}' AS now,
       now() > to_timestamp($1::float8 + $2) AS ahead, to_json(now()) #>> '{}' AS database
