-- A group's open dead letters by reason, counting at most $2 of them; by dead_letters_open. Of these
-- those whose operation another message has completed since.
-- $1 group. A row for each reason, as JSON.
SELECT to_json(r) FROM (
  SELECT reason, count(*) AS count, count(*) FILTER (WHERE completed) AS completed_since
  FROM (SELECT reason, reason <> 'payload_drift' AND EXISTS (
                 SELECT FROM hapax.idempotency_keys k
                 WHERE k.key = l.key AND k.scope = l.scope AND k.tenant = l.tenant
                   AND k.status = 'completed' AND k.error IS NULL) AS completed
        FROM hapax.dead_letters l
        WHERE group_id = $1 AND ended_at IS NULL LIMIT $2) d
  GROUP BY reason ORDER BY count(*) DESC, reason) r
