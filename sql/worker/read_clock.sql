-- The time, by the earlier of two clocks: a database's that jumps ahead must not expire every key.
-- $1 the worker's own clock plus what it may differ by; seconds since 1970. One row.
SELECT least(now(), to_timestamp($1))::text AS now, now() > to_timestamp($1) AS ahead,
       now()::text AS database
