-- Records of a group that neither a relay nor an order of an operator removed, the newest first.
-- $1 group, $2 limit. Rows as JSON.
SELECT to_json(r) FROM (
  SELECT topic, records, at, by FROM hapax.outbox_counts
  WHERE group_id = $1 AND what = 'removed' ORDER BY at DESC LIMIT $2) r
