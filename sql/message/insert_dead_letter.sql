-- Keeps a message whole. A redelivery adds nothing.
-- $1 group, $2 topic, $3 generation, $4 partition, $5 offset, $6 timestamp (ms) or NULL,
-- $7 timestamp type, $8 key, $9 payload, $10 header names, $11 header values, $12 reason, $13 error,
-- $14 SQLSTATE or NULL, $15 attempts, $16 handler, $17 handler version, $18 scope, $19 idempotency
-- key, $20 tenant, $21 fingerprint, $22 its rule, $23 facts as JSON: the other message (payload_drift);
-- "bytes_kept": false, if key, payload and headers are not the message's; "trace_id".
-- A row with the id if it was added.
INSERT INTO hapax.dead_letters (group_id, topic, generation, partition, kafka_offset,
  message_timestamp, timestamp_type, message_key, payload, header_names, header_values, reason,
  error, sqlstate, attempts, handler, handler_version, scope, key, tenant, fingerprint,
  fingerprint_rule, other, first_at)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10::bytea[], $11::bytea[], $12, $13, $14, $15, $16, $17,
  $18, $19, $20, $21, $22, $23,
  coalesce((SELECT first_at FROM hapax.attempts
            WHERE group_id = $1 AND topic = $2 AND generation = $3 AND partition = $4
              AND kafka_offset = $5), now())
ON CONFLICT (group_id, topic, generation, partition, kafka_offset) DO NOTHING
RETURNING id
