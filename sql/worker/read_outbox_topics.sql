-- For each gap between the known topics, the first topic in it that has rows. $1 group, $2 known topics.
-- Passes over the known ones: under a long snapshot they may have a million index entries of removed rows.
SELECT o.topic
FROM (SELECT k.topic AS low, lead(k.topic, 1, '~') OVER (ORDER BY k.topic COLLATE "C") AS high
      FROM unnest(array_append($2::text[], '')) AS k (topic)) gap
CROSS JOIN LATERAL (
  SELECT topic FROM hapax.outbox
  WHERE group_id = $1 AND topic > gap.low COLLATE "C" AND topic < gap.high COLLATE "C"
  ORDER BY topic LIMIT 1) o
