-- Renews the relay's lease and fences it. No row if another relay took it over. None if PostgreSQL lost
-- its tail since, because ids may name other rows now.
-- $1 name, $2 holder, $3 epoch, $4 incarnation, $5 seconds. Locks the lease until COMMIT.
UPDATE hapax.leases
SET until = clock_timestamp() + make_interval(secs => $5)
WHERE name = $1 AND holder = $2 AND epoch = $3
  AND $4::uuid = (SELECT substr(encode(sha256(convert_to(concat(id, extract(epoch FROM
                  pg_postmaster_start_time())), 'UTF8')), 'hex'), 1, 32)::uuid
                  FROM hapax.incarnation)
RETURNING 1
