-- How many operations of these scopes call to the outside and are not done, by status, counting at most
-- $2. `abandoned` as list_calls.sql has it. The index by expiry leads to them. $1 scopes. One row as JSON.
SELECT to_json(r) FROM (
  SELECT count(*) FILTER (WHERE status = 'started') AS started,
         count(*) FILTER (WHERE status = 'answered') AS answered,
         count(*) FILTER (WHERE status = 'unknown') AS unknown,
         count(*) FILTER (WHERE status <> 'unknown' AND NOT has_lease) AS abandoned
  FROM (SELECT k.status, coalesce(h.until >= clock_timestamp(), false) AND (k.status <> 'answered' OR EXISTS (
          SELECT FROM hapax.checkpoints c
          WHERE c.group_id = k.group_id AND c.topic = k.topic AND c.partition = k.partition
            AND c.generation = k.generation AND c.next_offset <= k.kafka_offset)
          OR EXISTS (
          SELECT FROM hapax.dead_letters d
          JOIN hapax.replays p ON p.dead_letter = d.id AND p.ended_at IS NULL
          WHERE d.group_id = k.group_id AND d.topic = k.topic AND d.generation = k.generation
            AND d.partition = k.partition AND d.kafka_offset = k.kafka_offset)) AS has_lease
        FROM hapax.idempotency_keys k LEFT JOIN hapax.holders h ON h.id = k.holder
        WHERE k.expires_at = 'infinity' AND k.scope = ANY ($1::text[])
          AND k.status IN ('started', 'answered', 'unknown') LIMIT $2) c) r
