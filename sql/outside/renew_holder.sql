-- The holder may go on calling. $1 holder, $2 seconds. One row; none if the lease is over, so that
-- others may have taken its keys, or gone, as the database lost it.
UPDATE hapax.holders SET until = clock_timestamp() + make_interval(secs => $2)
WHERE id = $1 AND until > clock_timestamp()
RETURNING id
