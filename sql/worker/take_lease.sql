-- Takes or renews a lease. $1 name, $2 holder, $3 seconds. One row when it is ours.
INSERT INTO hapax.leases AS l (name, holder, until)
VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3))
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
WHERE l.holder = $2 OR l.until < clock_timestamp()
RETURNING 1
