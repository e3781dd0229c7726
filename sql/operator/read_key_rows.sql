-- What became of many keys, for explain and audit. One by one through the primary key, independent
-- of the statistics. A claim, its failure and its result are one transaction. So a later change
-- means that the key was failed or forgotten, and claimed or forgotten since. A call to the outside (it
-- has a token) changes it several times. `refused`: it ended without an effect. The other side refused the call,
-- an operator ended it, or the key had failed before it was forgotten.
-- $1 keys, $2 scope, $3 tenants. A row for each that is there; n counts the keys from 1.
SELECT d.n, k.status, encode(k.fingerprint, 'hex') AS fingerprint, k.fingerprint_rule, k.group_id,
       k.topic, k.generation, k.partition, k.kafka_offset, k.updated_at <> k.created_at AND k.token IS NULL AS retaken,
       k.status IN ('completed', 'forgotten') AND k.error IS NOT NULL AS refused,
       to_json(k.updated_at) #>> '{}' AS updated_at, to_json(k.expires_at) #>> '{}' AS expires_at
FROM unnest($1::text[], $3::text[]) WITH ORDINALITY AS d (key, tenant, n),
     LATERAL (SELECT * FROM hapax.idempotency_keys i
              WHERE i.key = d.key COLLATE "C" AND i.scope = $2 AND i.tenant = d.tenant COLLATE "C"
              LIMIT 1) k
