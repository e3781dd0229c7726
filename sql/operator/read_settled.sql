-- The offsets of a stretch that are settled, on a route whose key is the position; not those that
-- the checkpoint has passed.
-- $1 group, $2 topic, $3 generation, $4 partition, $5 first offset, $6 below this offset.
SELECT o.settled
FROM hapax.positions p,
LATERAL (SELECT p.last AS settled UNION ALL SELECT p.last - unnest(p.earlier)) o
WHERE p.group_id = $1 AND p.topic = $2 AND p.generation = $3 AND p.partition = $4 AND p.last >= $5
  AND o.settled >= $5 AND o.settled < $6
