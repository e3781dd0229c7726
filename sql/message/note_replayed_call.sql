-- Notes the call that a replay is about to make, in the transaction that takes the key. A schema from
-- 18 on. $1 replay, $2 key, $3 tenant, $4 token. No rows.
UPDATE hapax.replays SET key = $2, tenant = $3, token = $4 WHERE id = $1
