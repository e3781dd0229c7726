-- Who has the key, and what is stored with it: in one row, so that both are of one operation.
-- $1 key, $2 scope, $3 tenant. One row or none. The key of an open call never expires: the year 9999.
SELECT status, encode(fingerprint, 'hex') AS fingerprint, fingerprint_rule, group_id, topic,
       generation, partition, kafka_offset, result,
       floor(extract(epoch FROM least(expires_at, '9999-12-31')))::bigint AS expires_at
FROM hapax.idempotency_keys WHERE key = $1 AND scope = $2 AND tenant = $3
