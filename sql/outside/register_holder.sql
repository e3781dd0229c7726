-- A process that is about to call gets a lease of its own. Forgets leases that ended long ago; no row
-- means the same. The id is drawn at random, because a sequence may give one twice after a failover
-- that lost its tail. Then each of the two holders would renew the other's lease.
-- $1 group, $2 worker, $3 seconds. One row with the holder's id.
WITH forgotten AS (
  DELETE FROM hapax.holders WHERE until < clock_timestamp() - interval '1 day')
INSERT INTO hapax.holders (id, group_id, worker, until) OVERRIDING SYSTEM VALUE
VALUES (('x' || right(replace(gen_random_uuid()::text, '-', ''), 15))::bit(60)::bigint,
        $1, $2, clock_timestamp() + make_interval(secs => $3))
RETURNING id
