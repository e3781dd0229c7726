-- Calls that were unknown have raised their tokens for what came too late. Behind keep_answers.sql or
-- keep_steps.sql in its transaction. If a replay has called, it names its call by the new token, or a
-- decision would not find the payload that called. A schema from 18 on.
-- Arrays: $1 keys, $2 scopes, $3 tenants, $4 which of them; n counts from 1. No rows.
UPDATE hapax.replays r SET token = k.token
FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS l(key, scope, tenant, n)
JOIN hapax.idempotency_keys k ON k.key = l.key COLLATE "C" AND k.scope = l.scope COLLATE "C"
  AND k.tenant = l.tenant COLLATE "C"
JOIN hapax.dead_letters d USING (group_id, topic, generation, partition, kafka_offset)
WHERE l.n = ANY ($4::bigint[]) AND r.dead_letter = d.id AND r.key = k.key AND r.tenant = k.tenant
  AND r.token = k.token - 1
