-- Operations that call to the outside and are not done, oldest first. The index by expiry leads to
-- them. $1 scopes, $2 statuses, $3 whether also those of other statuses that no worker has under a
-- lease, $4 limit. Rows as JSON; `may_call`: their holder's lease lasts; `dead_letter`: of the message,
-- if it is one.
SELECT to_json(r) FROM (
  SELECT k.key, k.scope, k.tenant, k.status, k.topic, k.generation, k.partition, k.kafka_offset,
         k.group_id, k.token, k.calls, k.called_at, k.answer::text AS answer, k.error, k.updated_at,
         h.worker, coalesce(h.until > clock_timestamp(), false) AS may_call,
         (SELECT d.id FROM hapax.dead_letters d
          WHERE d.group_id = k.group_id AND d.topic = k.topic AND d.generation = k.generation
            AND d.partition = k.partition AND d.kafka_offset = k.kafka_offset) AS dead_letter
  FROM hapax.idempotency_keys k LEFT JOIN hapax.holders h ON h.id = k.holder
  WHERE k.expires_at = 'infinity' AND k.scope = ANY ($1::text[])
    AND k.status IN ('started', 'answered', 'unknown')
    AND (k.status = ANY ($2::text[])
         OR $3::boolean AND coalesce(h.until < clock_timestamp(), true))
  ORDER BY k.updated_at LIMIT $4) r
