-- A dead letter, whole. Bytes as hex, headers in their order as [name, value], null staying null.
-- $1 id. One row or none, as JSON.
SELECT to_json(r) FROM (
  SELECT id, group_id, topic, generation, partition, kafka_offset, message_timestamp,
         timestamp_type,
         encode(message_key, 'hex') AS message_key,
         (SELECT coalesce(json_agg(json_build_array(encode(h.name, 'hex'), encode(h.value, 'hex'))
                          ORDER BY h.i), '[]'::json)
          FROM unnest(header_names, header_values) WITH ORDINALITY AS h (name, value, i))
           AS headers,
         encode(payload, 'hex') AS payload, reason, error, sqlstate, attempts, handler,
         handler_version, scope, key, tenant, encode(fingerprint, 'hex') AS fingerprint,
         fingerprint_rule, other, first_at, created_at,
         coalesce(ended_as, 'open') AS state, ended_at, ended_by, ended_why,
         (SELECT k.topic || '/' || k.partition || '/' || k.kafka_offset
          FROM hapax.idempotency_keys k
          WHERE d.ended_at IS NULL AND d.reason <> 'payload_drift' AND k.status = 'completed' AND k.error IS NULL
            AND k.key = d.key AND k.scope = d.scope AND k.tenant = d.tenant) AS completed_by,
         (SELECT to_json(a) FROM (
            SELECT a.last_at, a.last_error, a.sqlstate FROM hapax.attempts a
            WHERE a.group_id = d.group_id AND a.topic = d.topic AND a.generation = d.generation
              AND a.partition = d.partition AND a.kafka_offset = d.kafka_offset
              AND a.last_at > d.created_at) a) AS failed_again,
         (SELECT coalesce(json_agg(to_json(p) ORDER BY p.id), '[]'::json) FROM (
            SELECT id, wanted_at, who, why, edited, encode(payload, 'hex') AS payload, runs,
                   claimed_by, next_try, last_error, sqlstate, ended_at, outcome, detail
            FROM hapax.replays WHERE dead_letter = $1) p) AS replays
  FROM hapax.dead_letters d WHERE id = $1) r
