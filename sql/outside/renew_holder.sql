-- The holder may go on calling. $1 holder, $2 seconds. One row; none if the lease is gone: the
-- database lost it.
UPDATE hapax.holders SET until = clock_timestamp() + make_interval(secs => $2) WHERE id = $1
RETURNING id
