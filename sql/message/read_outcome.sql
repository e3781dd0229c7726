-- What a worker has made of a request since the gate accepted it: beside the gate's key, the worker's. A
-- key that failed before that will be taken over by the record (keep_outcome.sql).
-- $1 key, $2 scope, $3 tenant of the gate's key; $4 the record's idempotency key, $5 scope of its worker;
-- $6 the gate's retention in seconds. One row, or none. `settled`: that this outcome was seen is
-- committed. An operator's give-up leaves its own words as the error; end_call.sql lets no refusal begin
-- with them. `rejected`: the error has the words of a rejection. If a message is run again on purpose, its letter stays that of its first end. So other
-- words are of a newer end, and it is not known whether that was a rejection.
SELECT w.status, w.result, w.error IS NOT NULL AS has_error, w.error, coalesce(w.error LIKE 'given up by %', false) AS given_up,
       (SELECT d.reason = 'rejected' AND d.error = w.error FROM hapax.dead_letters d
        WHERE d.group_id = w.group_id AND d.topic = w.topic AND d.generation = w.generation
          AND d.partition = w.partition AND d.kafka_offset = w.kafka_offset) AS rejected,
       g.expires_at = greatest(w.updated_at, g.updated_at) + make_interval(secs => $6) AS settled
FROM hapax.idempotency_keys g, hapax.idempotency_keys w
WHERE g.key = $1 AND g.scope = $2 AND g.tenant = $3
  AND w.key = $4 COLLATE "C" AND w.scope = $5 COLLATE "C"
  AND (w.status <> 'failed' OR w.updated_at > '-infinity')
