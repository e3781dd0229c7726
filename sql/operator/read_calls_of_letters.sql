-- Calls to the outside on which an order about these open dead letters bears. A schema from 18 on.
-- $1 ids. Rows as JSON, one a call. `open`: it is not done. `decided`: an operator has decided, and
-- a replay that is open books its answer or calls again. `edited`: with another payload than the
-- letter's. The index by expiry leads to calls that are open.
SELECT to_json(c) FROM (
  SELECT d.id AS dead_letter, k.key, k.scope, k.tenant, k.status, true AS open,
         r.id IS NOT NULL AS decided, coalesce(r.edited, false) AS edited
  FROM hapax.dead_letters d
  JOIN hapax.idempotency_keys k USING (group_id, topic, generation, partition, kafka_offset)
  LEFT JOIN hapax.replays r ON r.dead_letter = d.id AND r.ended_at IS NULL AND r.key = k.key
    AND r.tenant = k.tenant AND r.token = k.token
    AND (k.status = 'answered'
         OR k.status = 'started' AND k.calls = 0 AND k.error IS NULL)  -- see decide_call.sql
  WHERE d.id = ANY ($1::bigint[]) AND k.expires_at = 'infinity'
    AND k.status IN ('started', 'answered', 'unknown')
  UNION ALL
  SELECT d.id, k.key, k.scope, k.tenant, k.status, false, true, r.edited
  FROM hapax.dead_letters d
  JOIN hapax.replays r ON r.dead_letter = d.id AND r.ended_at IS NULL
  JOIN hapax.idempotency_keys k ON k.key = r.key AND k.tenant = r.tenant AND k.token = r.token
    AND (k.group_id, k.topic, k.generation, k.partition, k.kafka_offset)
      = (d.group_id, d.topic, d.generation, d.partition, d.kafka_offset)
  WHERE d.id = ANY ($1::bigint[]) AND k.status = 'forgotten'
  ORDER BY 1) c
