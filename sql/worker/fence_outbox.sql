-- Locks the relay's lease until COMMIT, which that makes a durable one. No row if another relay took it
-- over. None if PostgreSQL lost its tail since, because ids may name other rows now. None in a logical copy
-- on the same server, which has the lease and the incarnation of the original. It writes no version
-- of the row: while an old snapshot is open, PostgreSQL removes none, and each step would walk over all.
-- $1 name, $2 holder, $3 epoch, $4 incarnation.
SELECT 1 FROM hapax.leases
WHERE name = $1 AND holder = $2 AND epoch = $3
  AND $4::uuid = (SELECT substr(encode(sha256(convert_to(concat(id, extract(epoch FROM
                  pg_postmaster_start_time())), 'UTF8')), 'hex'), 1, 32)::uuid
                  FROM hapax.incarnation)
  AND (SELECT database_oid FROM hapax.store)
    = (SELECT oid FROM pg_database WHERE datname = current_database())
FOR NO KEY UPDATE
