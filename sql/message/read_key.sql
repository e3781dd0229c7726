-- Who has the key. Plain, not FOR UPDATE: a lock for each duplicate wrote WAL and halved the rate.
-- $1 key, $2 scope, $3 tenant. One row or none.
SELECT status, encode(fingerprint, 'hex') AS fingerprint, fingerprint_rule, group_id, topic,
       generation, partition, kafka_offset
FROM hapax.idempotency_keys WHERE key = $1 AND scope = $2 AND tenant = $3
