-- Takes a free lease over, or this holder's own again, under a new epoch, which fences whoever had it.
-- $1 name, $2 holder, $3 seconds. One row with the epoch when it is ours.
INSERT INTO hapax.leases AS l (name, holder, until, epoch)
VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3), 1)
ON CONFLICT (name) DO UPDATE
  SET holder = excluded.holder, until = excluded.until, epoch = l.epoch + 1
WHERE l.holder = $2 OR l.until < clock_timestamp()
RETURNING l.epoch
