-- The id of the dead letter at these coordinates, of the newest generation that has one. The
-- generations are counted out, so that each is one look into the unique index.
-- $1 group, $2 topic, $3 partition, $4 offset. One row or none, as JSON.
SELECT to_json(r) FROM (
  SELECT d.id FROM generate_series(1, coalesce((SELECT generation FROM hapax.checkpoints
      WHERE group_id = $1 AND topic = $2 AND partition = $3), 1)) AS g (generation)
  JOIN hapax.dead_letters d ON d.generation = g.generation
  WHERE d.group_id = $1 AND d.topic = $2 AND d.partition = $3 AND d.kafka_offset = $4
  ORDER BY d.generation DESC LIMIT 1) r
