-- The fingerprint of an open call's payload by another rule, so that take_calls.sql finds it equal.
-- $1 key, $2 scope, $3 tenant, $4 fingerprint, $5 its rule, $6 the one that is kept, $7 its rule.
-- No rows. The second time changes nothing.
UPDATE hapax.idempotency_keys SET fingerprint = $4, fingerprint_rule = $5
WHERE key = $1 AND scope = $2 AND tenant = $3 AND fingerprint = $6 AND fingerprint_rule = $7
  AND status IN ('started', 'answered')
