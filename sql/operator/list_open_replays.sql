-- Open replays of a group's dead letters, newest first. The index of open replays leads to them,
-- because ended ones stay for good and are many. $1 group, $2 below this id, $3 limit. Rows as JSON.
WITH open AS MATERIALIZED (SELECT * FROM hapax.replays WHERE ended_at IS NULL)
SELECT to_json(r) FROM (
  SELECT p.id, p.dead_letter, p.wanted_at, p.who, left(p.why, 300) AS why, p.edited, p.runs,
         'open' AS state, p.ended_at, left(coalesce(p.detail, p.last_error), 300) AS detail,
         CASE WHEN p.claimed_until > now() THEN p.claimed_by END AS claimed_by,
         greatest(0, extract(epoch FROM p.next_try - now()))::bigint AS wait_seconds,
         d.topic, d.partition, d.kafka_offset, d.reason
  FROM open p JOIN hapax.dead_letters d ON d.id = p.dead_letter
  WHERE d.group_id = $1 AND p.id < $2
  ORDER BY p.id DESC LIMIT $3) r
