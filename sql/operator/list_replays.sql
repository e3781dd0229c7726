-- Replays of a group's dead letters, newest first. $1 group, $2 below this id, $3 state or NULL:
-- completed, refused, failed, cancelled; $4 limit. For the open ones see list_open_replays.sql. Rows as
-- JSON.
SELECT to_json(r) FROM (
  SELECT p.id, p.dead_letter, p.wanted_at, p.who, left(p.why, 300) AS why, p.edited, p.runs,
         coalesce(p.outcome, 'open') AS state, p.ended_at,
         left(coalesce(p.detail, p.last_error), 300) AS detail,
         CASE WHEN p.ended_at IS NULL AND p.claimed_until > now() THEN p.claimed_by END AS claimed_by,
         greatest(0, extract(epoch FROM p.next_try - now()))::bigint AS wait_seconds,
         d.topic, d.partition, d.kafka_offset, d.reason
  FROM hapax.replays p JOIN hapax.dead_letters d ON d.id = p.dead_letter
  WHERE d.group_id = $1 AND p.id < $2
    AND ($3::text IS NULL OR p.outcome = $3)
  ORDER BY p.id DESC LIMIT $4) r
