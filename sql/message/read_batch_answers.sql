-- Who has the keys of a batch, and what is stored with them: read_batch_keys.sql, as read_answer.sql.
-- $1 keys, $2 scope, $3 tenants. A row for each that is there; n counts the keys from 1.
SELECT d.n, k.status, encode(k.fingerprint, 'hex') AS fingerprint, k.fingerprint_rule, k.group_id,
       k.topic, k.generation, k.partition, k.kafka_offset, k.result,
       floor(extract(epoch FROM least(k.expires_at, '9999-12-31')))::bigint AS expires_at
FROM unnest($1::text[], $3::text[]) WITH ORDINALITY AS d (key, tenant, n),
     LATERAL (SELECT * FROM hapax.idempotency_keys i
              WHERE i.key = d.key COLLATE "C" AND i.scope = $2 AND i.tenant = d.tenant COLLATE "C"
              LIMIT 1) k
