-- A page of a group's open dead letters that fit, oldest first; by dead_letters_open.
-- $1 group, $2 above this id, $3 up to this id, $4 ids or NULL, $5 topic or NULL, $6 handler or NULL,
-- $7 reason or NULL, $8 part of the error or NULL, $9 at most so many seconds old or NULL, $10 at least
-- so many or NULL, $11 key or NULL, $12 scope or NULL, $13 tenant or NULL, $14 whether also
-- those that an operator has skipped, $15 limit. Rows as JSON.
SELECT to_json(r) FROM (
  SELECT d.id, d.created_at, d.topic, d.generation, d.partition, d.kafka_offset, d.reason, d.handler,
         d.scope, d.key, d.tenant, left(d.error, 300) AS error,
         EXISTS (SELECT FROM hapax.replays r WHERE r.dead_letter = d.id AND r.ended_at IS NULL)
           AS replay_wanted
  FROM hapax.dead_letters d
  WHERE d.group_id = $1 AND d.ended_at IS NULL AND d.id > $2 AND d.id <= $3
    AND ($4::bigint[] IS NULL OR d.id = ANY ($4)) AND ($5::text IS NULL OR d.topic = $5)
    AND ($6::text IS NULL OR d.handler = $6) AND ($7::text IS NULL OR d.reason = $7)
    AND ($8::text IS NULL OR position($8 IN d.error) > 0)
    AND ($9::double precision IS NULL AND $10::double precision IS NULL OR (
      SELECT coalesce(given_up >= now() - make_interval(secs => $9), true)
         AND coalesce(given_up <= now() - make_interval(secs => $10), true)
      FROM (SELECT greatest(d.created_at, max(a.last_at)) AS given_up FROM hapax.attempts a
            WHERE a.group_id = d.group_id AND a.topic = d.topic AND a.generation = d.generation
              AND a.partition = d.partition AND a.kafka_offset = d.kafka_offset) f))
    AND ($11::text IS NULL OR d.key = $11) AND ($12::text IS NULL OR d.scope = $12)
    AND ($13::text IS NULL OR d.tenant = $13)
    AND ($14::boolean OR d.reason <> 'skipped_by_operator')
  ORDER BY d.id LIMIT $15) r
