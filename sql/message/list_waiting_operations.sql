-- Keys of accepted requests whose outcome has not been seen yet, oldest first. An outside call's key
-- waits at infinity, which these do not.
-- $1 scope of the gate, $2 the paths of its routes, $3 expires_at, $4 key and $5 tenant of the last
-- one of the page before, $6 at most so many.
SELECT to_json(expires_at) #>> '{}' AS expires_at, key, tenant, topic, encode(fingerprint, 'hex') AS fingerprint
FROM hapax.idempotency_keys
WHERE expires_at > now() + interval '50 years' AND expires_at < 'infinity'
  AND scope = $1 AND topic = ANY ($2::text[])
  AND (expires_at, key, tenant) > ($3::timestamptz, $4::text COLLATE "C", $5::text COLLATE "C")
ORDER BY expires_at, key, tenant LIMIT $6
