-- An operation before an operator decides about it. $1 key, $2 scope, $3 tenant. One row as JSON, or
-- none. lock_call.sql comes first. As list_calls.sql. `called_by`: a worker calls now, under a lease; an
-- answer needs no call any more. `comes_no_more`: why its message does not come
-- again by itself, or ''.
SELECT to_json(r) FROM (
  SELECT k.key, k.scope, k.tenant, k.status, k.topic, k.generation, k.partition, k.kafka_offset,
         k.group_id, k.token, k.calls, k.called_at, k.answer::text AS answer, k.error, k.updated_at,
         k.steps::text AS steps,
         (SELECT h.worker FROM hapax.holders h
          WHERE h.id = k.holder AND h.until > clock_timestamp() AND k.status = 'started') AS called_by,
         (SELECT d.id FROM hapax.dead_letters d
          WHERE d.group_id = k.group_id AND d.topic = k.topic AND d.generation = k.generation
            AND d.partition = k.partition AND d.kafka_offset = k.kafka_offset
            AND d.ended_at IS NULL) AS dead_letter,
         coalesce(
           (SELECT CASE WHEN c.generation <> k.generation THEN 'earlier log'
                        WHEN c.next_offset > k.kafka_offset THEN 'passed over' ELSE '' END
            FROM hapax.checkpoints c
            WHERE c.group_id = k.group_id AND c.topic = k.topic AND c.partition = k.partition),
           'no checkpoint') AS comes_no_more
  FROM hapax.idempotency_keys k WHERE k.key = $1 AND k.scope = $2 AND k.tenant = $3) r
