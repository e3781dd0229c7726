-- A relay's lease that lasts longer than any is asked for, because PostgreSQL's clock went back.
-- $1 group, $2 the longest that one is asked for, in seconds. One row with the holder and the end, or
-- none.
SELECT holder, to_char(until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS until
FROM hapax.leases
WHERE name = 'outbox of ' || $1::text AND until > clock_timestamp() + make_interval(secs => $2)
