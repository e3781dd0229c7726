-- Has keys of accepted requests expire, counted from their outcomes (read_outcome.sql). Committed
-- synchronously, it also makes these outcomes durable.
-- $1 keys, $2 scopes, $3 tenants of the gate's keys; $4 the records' idempotency keys, $5 scopes of their
-- workers; $6 the gate's retention in seconds. A row: of how many the outcome is there.
WITH settled AS (
  UPDATE hapax.idempotency_keys g
  SET expires_at = greatest(w.updated_at, g.updated_at) + make_interval(secs => $6)
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])
         AS a (key, scope, tenant, record, worker_scope),
       hapax.idempotency_keys w
  WHERE g.key = a.key COLLATE "C" AND g.scope = a.scope COLLATE "C" AND g.tenant = a.tenant COLLATE "C"
    AND w.key = a.record COLLATE "C" AND w.scope = a.worker_scope COLLATE "C"
    AND (w.status = 'completed' OR w.status = 'failed' AND NOT EXISTS (
    SELECT FROM hapax.dead_letters d, unnest(d.header_names, d.header_values) AS h (name, value),
      convert_to(concat_ws('/', '', g.topic, g.generation, g.partition, g.kafka_offset), 'UTF8') AS run
    WHERE d.group_id = w.group_id AND d.topic = w.topic AND d.generation = w.generation
      AND d.partition = w.partition AND d.kafka_offset = w.kafka_offset AND h.name = 'hapax-origin'
      AND substr(h.value, length(h.value) - length(run) + 1) <> run))
  RETURNING 1)
SELECT count(*) AS settled FROM settled
