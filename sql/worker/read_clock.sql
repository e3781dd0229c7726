-- The time, by the earlier of two clocks: a database's that jumps ahead must not expire every key.
-- $1 the worker's own clock, seconds since 1970. $2 seconds by which a database's may be ahead of it. One
-- row.
SELECT (CASE WHEN now() > to_timestamp($1::float8 + $2) THEN to_timestamp($1) ELSE now() END)::text AS now,
       now() > to_timestamp($1::float8 + $2) AS ahead, now()::text AS database
