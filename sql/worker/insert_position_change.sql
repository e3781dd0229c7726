-- Keeps a jump of a partition's position.
-- $1 group, $2 topic, $3 partition, $4 generation, $5 from or NULL, $6 to, $7 cause, $8 who, $9 why.
-- No rows.
INSERT INTO hapax.position_changes (group_id, topic, partition, generation, from_offset, to_offset,
  cause, who, why)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
