-- A process that is about to call gets a lease of its own. Forgets leases that ended long ago; no row
-- means the same.
-- $1 group, $2 worker, $3 seconds. One row with the holder's id.
WITH forgotten AS (
  DELETE FROM hapax.holders WHERE until < clock_timestamp() - interval '1 day')
INSERT INTO hapax.holders (group_id, worker, until)
VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3))
RETURNING id
