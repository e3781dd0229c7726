-- Takes a free lease over, or this holder's own again, under a new epoch, which fences the holder before.
-- A lease is free once it is over. If its relay has no session any more, it is free once a quarter of its
-- time has passed: show_relay.sql tells who has one. The end of a holder's name tells its time, which may
-- be another relay's. A holder of an older release shows no session, and its name does not end so.
-- $1 name, $2 holder, $3 seconds. One row with the epoch when it is ours.
INSERT INTO hapax.leases AS l (name, holder, until, epoch)
VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3), 1)
ON CONFLICT (name) DO UPDATE
  SET holder = excluded.holder, until = excluded.until, epoch = l.epoch + 1
WHERE l.holder = $2 OR l.until < clock_timestamp()
  OR l.until < clock_timestamp() + 0.75 * make_interval(
         secs => substring(l.holder FROM ' session-([0-9]+)s[0-9]+$')::float8)
     AND NOT EXISTS (
       SELECT FROM pg_locks
       WHERE locktype = 'advisory' AND objsubid = 1 AND granted
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
         AND (classid::bigint << 32 | objid::bigint)
             = hashtextextended('hapax relay ' || l.holder, 0))
RETURNING l.epoch
