-- For the test kit: as if $1 seconds had passed since every failed run and call, and of every lease.
WITH leases AS (UPDATE hapax.holders SET until = until - make_interval(secs => $1)),
calls AS (UPDATE hapax.idempotency_keys SET called_at = called_at - make_interval(secs => $1)
          WHERE status IN ('started', 'answered'))
UPDATE hapax.attempts SET first_at = first_at - make_interval(secs => $1),
  last_at = last_at - make_interval(secs => $1), next_try = next_try - make_interval(secs => $1)
