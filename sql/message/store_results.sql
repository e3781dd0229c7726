-- Stores the handlers' results with the claimed keys of a batch. Run while enable_seqscan is off:
-- then each is found through the primary key and by its place, independent of the statistics.
-- $1 keys, $2 scope, $3 tenants, $4 results. No rows.
UPDATE hapax.idempotency_keys k SET result = f.result::json, updated_at = now()
FROM (SELECT i.place, d.result
      FROM unnest($1::text[], $3::text[], $4::text[]) AS d (key, tenant, result),
           LATERAL (SELECT ctid AS place FROM hapax.idempotency_keys
                    WHERE key = d.key COLLATE "C" AND scope = $2 AND tenant = d.tenant COLLATE "C"
                    LIMIT 1) i) f
WHERE k.ctid = f.place
