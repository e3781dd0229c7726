-- A request that the gate accepted. $1 key, $2 scope, $3 tenant of the gate's key. One row, or none if
-- the gate has no such key. `waits`: the outcome has not been seen yet (its key was claimed for a century).
SELECT topic AS path, encode(fingerprint, 'hex') AS fingerprint,
       expires_at > now() + interval '50 years' AS waits
FROM hapax.idempotency_keys
WHERE key = $1 AND scope = $2 AND tenant = $3
