-- Completes answered keys in the transaction that books their answers, as claim_answered.sql does
-- one. arm.sql comes before. Callers sort by key and tenant bytewise; no key twice.
-- $1 keys, $2 scope, $3 tenants, $4 tokens, $5 retention in seconds, $6 group, $7 topic, $8 partitions,
-- $9 epochs of the partitions (0: no worker has it).
-- n counts from 1: a row for each key that is answered under that token, and whose partition no other
-- worker has taken. Locks these rows until the end of the transaction, in the order of keys.
WITH locked AS MATERIALIZED (
  SELECT k.key, k.tenant, d.n
  FROM unnest($1::text[], $3::text[], $4::bigint[], $8::int[], $9::bigint[])
    WITH ORDINALITY AS d (key, tenant, token, partition, epoch, n)
    JOIN hapax.idempotency_keys k ON k.key = d.key COLLATE "C" AND k.scope = $2 COLLATE "C"
      AND k.tenant = d.tenant COLLATE "C" AND k.token = d.token AND k.status = 'answered'
  WHERE d.epoch = 0 OR (d.partition, d.epoch) IN (SELECT e.partition, e.epoch FROM hapax.epochs e
    WHERE e.group_id = $6 AND e.topic = $7 AND e.partition = ANY ($8::int[]))
  ORDER BY k.key, k.tenant FOR UPDATE OF k)
UPDATE hapax.idempotency_keys k
SET status = 'completed', updated_at = now(), expires_at = now() + make_interval(secs => $5),
    holder = NULL, answer = NULL
FROM locked l WHERE k.key = l.key AND k.scope = $2 AND k.tenant = l.tenant
RETURNING set_config('hapax.gate', 'queued', true), l.n
