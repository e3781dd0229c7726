-- What a worker took last, and whether PostgreSQL lost its tail since. $1 group, $2 worker.
-- A row for each partition; incarnation is NULL where nobody has looked since the loss.
SELECT topic, partition, epoch, (SELECT id FROM hapax.incarnation) AS incarnation
FROM hapax.checkpoints WHERE group_id = $1 AND owner = $2
