-- Whether the message at these coordinates was given up on and is this record of an outbox. A relay that
-- dies sends records again, at other offsets.
-- $1 group, $2 topic, $3 generation, $4 partition, $5 offset, $6 the record's header hapax-origin.
-- One row.
SELECT EXISTS (
  SELECT FROM hapax.dead_letters d, unnest(d.header_names, d.header_values) AS h (name, value)
  WHERE d.group_id = $1 AND d.topic = $2 AND d.generation = $3 AND d.partition = $4
    AND d.kafka_offset = $5 AND h.name = 'hapax-origin' AND h.value = $6) AS copy
