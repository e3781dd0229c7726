-- A claimed replay with its message, as the first statement of its run. Bytes as hex, headers in their
-- order as [name, value], null staying null.
-- $1 replay, $2 its runs as claimed.
-- One row, or none if it ended or another worker has claimed it since. `without_bytes`: the letter has
-- not the message's key, payload and headers. Letters from before bytes_kept tell it by their error.
-- Locks the replay until the end of the transaction.
SELECT r.edited, d.group_id, d.topic, d.generation, d.partition, d.kafka_offset,
       d.message_timestamp, d.timestamp_type, encode(d.message_key, 'hex') AS message_key,
       encode(CASE WHEN r.edited THEN r.payload ELSE d.payload END, 'hex') AS payload,
       (SELECT coalesce(json_agg(json_build_array(encode(h.name, 'hex'), encode(h.value, 'hex'))
                        ORDER BY h.i), '[]'::json)
        FROM unnest(d.header_names, d.header_values) WITH ORDINALITY AS h (name, value, i))
         AS headers,
       d.scope, d.key, d.tenant, d.ended_as,
       coalesce(d.other->>'bytes_kept', '') = 'false'
         OR d.payload IS NULL AND d.message_key IS NULL AND d.header_names = '{}'
            AND position(' (the message itself could not be kept: ' IN d.error) > 0 AS without_bytes
FROM hapax.replays r JOIN hapax.dead_letters d ON d.id = r.dead_letter
WHERE r.id = $1 AND r.runs = $2 AND r.ended_at IS NULL
FOR UPDATE OF r
