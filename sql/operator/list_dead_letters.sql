-- A group's dead letters of a range of ids that fit, newest first. scan_dead_letters.sql has
-- bounded the range.
-- $1 group, $2 first id, $3 below this id, $4 topic or NULL, $5 handler or NULL, $6 reason or NULL,
-- $7 seconds back or NULL, $8 limit, $9 at least so many seconds
-- old or NULL, $10 part of the error or NULL, $11 state or NULL, $12 scope or NULL, $13 tenant or NULL.
-- Rows as JSON.
SELECT to_json(r) FROM (
  SELECT id, created_at, topic, generation, partition, kafka_offset, reason, handler, scope, key,
         tenant, attempts, sqlstate, left(error, 300) AS error,
         coalesce(ended_as, 'open') AS state, ended_at,
         EXISTS (SELECT FROM hapax.replays r WHERE r.dead_letter = d.id AND r.ended_at IS NULL)
           AS replay_wanted,
         (SELECT k.topic || '/' || k.partition || '/' || k.kafka_offset
          FROM hapax.idempotency_keys k
          WHERE d.ended_at IS NULL AND d.reason <> 'payload_drift' AND k.status = 'completed' AND k.error IS NULL
            AND k.key = d.key AND k.scope = d.scope AND k.tenant = d.tenant) AS completed_by
  FROM hapax.dead_letters d
  WHERE id >= $2 AND id < $3 AND group_id = $1 AND ($4::text IS NULL OR topic = $4)
    AND ($5::text IS NULL OR handler = $5) AND ($6::text IS NULL OR reason = $6)
    AND ($7::double precision IS NULL AND $9::double precision IS NULL OR (
      SELECT coalesce(given_up >= now() - make_interval(secs => $7), true)
         AND coalesce(given_up <= now() - make_interval(secs => $9), true)
      FROM (SELECT greatest(d.created_at, max(a.last_at)) AS given_up FROM hapax.attempts a
            WHERE a.group_id = d.group_id AND a.topic = d.topic AND a.generation = d.generation
              AND a.partition = d.partition AND a.kafka_offset = d.kafka_offset) f))
    AND ($10::text IS NULL OR position($10 IN error) > 0)
    AND ($11::text IS NULL OR coalesce(ended_as, 'open') = $11)
    AND ($12::text IS NULL OR scope = $12) AND ($13::text IS NULL OR tenant = $13)
  ORDER BY id DESC LIMIT $8) r
