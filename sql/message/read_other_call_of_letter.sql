-- A call that an earlier replay of a dead letter has made under another key, and that is not done. A
-- schema from 18 on. $1 letter, $2 scope, $3 key, $4 tenant of the replay that asks. One row or none.
SELECT k.key, k.status
FROM hapax.replays r
JOIN hapax.idempotency_keys k ON k.key = r.key AND k.scope = $2 AND k.tenant = r.tenant
WHERE r.dead_letter = $1 AND k.token = r.token AND k.status IN ('started', 'answered', 'unknown')
  AND (k.key, k.tenant) <> ($3::text, $4::text)
ORDER BY r.id DESC LIMIT 1
