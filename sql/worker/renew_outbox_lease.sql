-- Renews the relay's lease, behind fence_outbox.sql. No row on the same conditions.
-- $1 name, $2 holder, $3 epoch, $4 incarnation, $5 seconds.
UPDATE hapax.leases
SET until = clock_timestamp() + make_interval(secs => $5)
WHERE name = $1 AND holder = $2 AND epoch = $3
  AND $4::uuid = (SELECT substr(encode(sha256(convert_to(concat(id, extract(epoch FROM
                  pg_postmaster_start_time())), 'UTF8')), 'hex'), 1, 32)::uuid
                  FROM hapax.incarnation)
RETURNING 1
