-- Takes keys for calls to the outside; to be committed synchronously before anything is called.
-- Arrays, one element a message: $1 keys, $2 scopes, $3 tenants, $4 fingerprints, $5 their rules,
-- $6 groups, $7 topics, $8 generations, $9 partitions, $10 offsets, $11 epochs of the partitions
-- (0: no worker has it), $12 whether the process does nothing else. $13 the holder. $14 whether the
-- key of a dead letter may be taken (a replay). No key twice.
-- A row for each that is taken; n counts the messages from 1. Not taken: completed, unknown, called
-- by a holder with a lease (this one included), `failed` by the same message. Nor is any taken if the
-- partition is another worker's, or this holder's own lease is over. A key that is `started`, without
-- a holder and with an error, is at rest: it ended behind steps that are done. A message that is a dead
-- letter does not take it. The error stays until the call is answered, or ends otherwise.
-- Only the same message, or one with the same payload, takes over from a holder whose lease is over.
-- A message that is a dead letter needs the same payload, too, because a replay may have called with an
-- edited one. Nor does it take a `forgotten` key while such a replay is open.
-- An answer needs no call any more, so it needs no lease either.
-- While this statement waits for a row, a new holder may take the key, or the call may end with a dead
-- letter. The statement sees neither that holder nor the dead letter. So it takes a key over only if it
-- can see the same holder, or that there is none. It takes a `failed` key only if it can see that it is.
-- Locks the rows until the end of the transaction, in the order of keys.
WITH wanted AS (
  SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::text[], $6::text[],
    $7::text[], $8::int[], $9::int[], $10::bigint[], $11::bigint[], $12::boolean[])
  WITH ORDINALITY AS w(key, scope, tenant, fingerprint, fingerprint_rule, group_id, topic, generation,
    partition, kafka_offset, epoch, alone, n)
  WHERE EXISTS (SELECT FROM hapax.holders h WHERE h.id = $13::bigint AND h.until > clock_timestamp())
), taken AS (
  INSERT INTO hapax.idempotency_keys AS k (key, scope, tenant, status, fingerprint, fingerprint_rule,
    group_id, topic, generation, partition, kafka_offset, expires_at, holder, token, called_at, calls,
    alone, crashes)
  SELECT key, scope, tenant, 'started', fingerprint, fingerprint_rule, group_id, topic, generation,
    partition, kafka_offset, 'infinity', $13::bigint,
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint, clock_timestamp(), 1, alone, 0
  FROM wanted w
  WHERE epoch = 0 OR epoch = (SELECT e.epoch FROM hapax.epochs e
    WHERE e.group_id = w.group_id COLLATE "C" AND e.topic = w.topic COLLATE "C"
      AND e.partition = w.partition)
  ORDER BY key, scope, tenant
  ON CONFLICT (key, scope, tenant) DO UPDATE SET
    status = CASE k.status WHEN 'answered' THEN 'answered' ELSE 'started' END,
    fingerprint = excluded.fingerprint, fingerprint_rule = excluded.fingerprint_rule,
    group_id = excluded.group_id, topic = excluded.topic, generation = excluded.generation,
    partition = excluded.partition, kafka_offset = excluded.kafka_offset,
    result = NULL, error = CASE k.status WHEN 'started' THEN k.error END, updated_at = now(),
    expires_at = 'infinity',
    holder = excluded.holder, token = greatest(k.token + 1, excluded.token),
    called_at = CASE WHEN k.status IN ('started', 'answered') AND k.calls > 0 THEN k.called_at
                     ELSE excluded.called_at END,
    calls = CASE k.status WHEN 'started' THEN k.calls + 1 WHEN 'answered' THEN k.calls
                          ELSE 1 END,
    crashes = CASE WHEN k.status = 'started'
                   THEN k.crashes + (k.alone AND k.holder IS NOT NULL)::int ELSE 0 END,
    alone = excluded.alone,
    answer = CASE k.status WHEN 'answered' THEN k.answer END
  WHERE k.status = 'forgotten' AND ($14::boolean OR NOT EXISTS (
          SELECT FROM hapax.dead_letters d
          JOIN hapax.replays r ON r.dead_letter = d.id AND r.ended_at IS NULL AND r.edited
          WHERE d.group_id = excluded.group_id AND d.topic = excluded.topic
            AND d.generation = excluded.generation AND d.partition = excluded.partition
            AND d.kafka_offset = excluded.kafka_offset))
     OR k.status = 'failed' AND ($14::boolean OR
          EXISTS (SELECT FROM hapax.idempotency_keys seen
                  WHERE (seen.key, seen.scope, seen.tenant) = (k.key, k.scope, k.tenant)
                    AND seen.status = 'failed' AND seen.token IS NOT DISTINCT FROM k.token)
          AND NOT EXISTS (
            SELECT FROM hapax.dead_letters d
            WHERE d.group_id = excluded.group_id AND d.topic = excluded.topic
              AND d.generation = excluded.generation AND d.partition = excluded.partition
              AND d.kafka_offset = excluded.kafka_offset))
     OR k.status IN ('started', 'answered')
        AND ((k.group_id, k.topic, k.generation, k.partition, k.kafka_offset)
             = (excluded.group_id, excluded.topic, excluded.generation, excluded.partition,
                excluded.kafka_offset)
             AND ($14::boolean OR NOT EXISTS (
               SELECT FROM hapax.dead_letters d
               WHERE d.group_id = excluded.group_id AND d.topic = excluded.topic
                 AND d.generation = excluded.generation AND d.partition = excluded.partition
                 AND d.kafka_offset = excluded.kafka_offset))
             OR k.fingerprint = excluded.fingerprint
                AND k.fingerprint_rule = excluded.fingerprint_rule)
        AND (k.status = 'answered'
             OR EXISTS (SELECT FROM hapax.idempotency_keys seen
                        WHERE (seen.key, seen.scope, seen.tenant) = (k.key, k.scope, k.tenant)
                          AND seen.token = k.token AND seen.holder IS NOT DISTINCT FROM k.holder)
                AND NOT EXISTS (SELECT FROM hapax.holders h
                                WHERE h.id = k.holder AND h.until > clock_timestamp())
                AND ($14::boolean OR k.holder IS NOT NULL OR k.error IS NULL OR NOT EXISTS (
                  SELECT FROM hapax.dead_letters d
                  WHERE d.group_id = excluded.group_id AND d.topic = excluded.topic
                    AND d.generation = excluded.generation AND d.partition = excluded.partition
                    AND d.kafka_offset = excluded.kafka_offset)))
  RETURNING key, scope, tenant, token, status, calls, crashes, answer,
    (extract(epoch FROM clock_timestamp() - called_at) * 1000)::bigint AS age_ms)
SELECT w.n, t.token, t.status = 'answered' AS answered, t.calls, t.crashes, t.answer, t.age_ms
FROM wanted w JOIN taken t ON t.key = w.key COLLATE "C" AND t.scope = w.scope COLLATE "C"
  AND t.tenant = w.tenant COLLATE "C"
