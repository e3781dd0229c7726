-- What a worker has made of a request that the gate accepted: beside the gate's key, the worker's.
-- A failure counts if its letter is the record of this acceptance, or keeps no header that tells. If it is
-- of an earlier acceptance, this one's record will take the key over.
-- $1 key, $2 scope, $3 tenant of the gate's key; $4 the record's idempotency key, $5 scope of its worker;
-- $6 the gate's retention in seconds. One row, or none. `settled`: that this outcome was seen is
-- committed. An operator's give-up leaves its own words as the error; end_call.sql lets no refusal begin
-- with them. `was_skipped`: by an operator, though its handler may have run. `rejected`: the error has the
-- words of a rejection. If a message is run again on purpose, its letter stays that of its first end. So
-- other words are of a newer end, and it is not known whether that was a rejection.
SELECT w.status, w.result, w.error IS NOT NULL AS has_error, w.error,
       coalesce(w.error LIKE 'given up by %', false) AS given_up,
       coalesce(d.reason = 'skipped_by_operator', false) AS was_skipped,
       d.reason = 'rejected' AND d.error = w.error AS rejected,
       g.expires_at = greatest(w.updated_at, g.updated_at) + make_interval(secs => $6) AS settled
FROM hapax.idempotency_keys g CROSS JOIN hapax.idempotency_keys w
LEFT JOIN hapax.dead_letters d
  ON d.group_id = w.group_id AND d.topic = w.topic AND d.generation = w.generation
 AND d.partition = w.partition AND d.kafka_offset = w.kafka_offset
WHERE g.key = $1 AND g.scope = $2 AND g.tenant = $3
  AND w.key = $4 COLLATE "C" AND w.scope = $5 COLLATE "C"
  AND (w.status <> 'failed' OR NOT EXISTS (
    SELECT FROM unnest(d.header_names, d.header_values) AS h (name, value),
      convert_to(concat_ws('/', '', g.topic, g.generation, g.partition, g.kafka_offset), 'UTF8') AS run
    WHERE h.name = 'hapax-origin' AND substr(h.value, length(h.value) - length(run) + 1) <> run))
