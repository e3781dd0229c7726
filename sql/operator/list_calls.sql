-- Operations that call to the outside and are not done, oldest first. The index by expiry leads to
-- them. $1 scopes, $2 statuses, $3 whether also the abandoned ones of other statuses, $4 limit. Rows as
-- JSON; `may_call`: their holder's lease lasts; `dead_letter`: of the message, if it is one.
-- Abandoned: no worker has it under a lease. An answer is abandoned, too, if its message does not come
-- again by itself and no replay of it is open. Its worker may live, but does not book it any more.
SELECT to_json(r) FROM (
  SELECT k.key, k.scope, k.tenant, k.status, k.topic, k.generation, k.partition, k.kafka_offset,
         k.group_id, k.token, k.calls, k.called_at, k.answer::text AS answer, k.error, k.updated_at,
         k.steps::text AS steps,
         h.worker, coalesce(h.until > clock_timestamp(), false) AS may_call,
         (SELECT d.id FROM hapax.dead_letters d
          WHERE d.group_id = k.group_id AND d.topic = k.topic AND d.generation = k.generation
            AND d.partition = k.partition AND d.kafka_offset = k.kafka_offset) AS dead_letter
  FROM hapax.idempotency_keys k LEFT JOIN hapax.holders h ON h.id = k.holder
  WHERE k.expires_at = 'infinity' AND k.scope = ANY ($1::text[])
    AND k.status IN ('started', 'answered', 'unknown')
    AND (k.status = ANY ($2::text[])
         OR $3::boolean AND (coalesce(h.until < clock_timestamp(), true)
                             OR k.status = 'answered' AND NOT EXISTS (
           SELECT FROM hapax.checkpoints c
           WHERE c.group_id = k.group_id AND c.topic = k.topic AND c.partition = k.partition
             AND c.generation = k.generation AND c.next_offset <= k.kafka_offset)
         AND NOT EXISTS (
           SELECT FROM hapax.dead_letters d
           JOIN hapax.replays p ON p.dead_letter = d.id AND p.ended_at IS NULL
           WHERE d.group_id = k.group_id AND d.topic = k.topic AND d.generation = k.generation
             AND d.partition = k.partition AND d.kafka_offset = k.kafka_offset)))
  ORDER BY k.updated_at LIMIT $4) r
