-- The states of a group's newest replays. $1 group, $2 how many are counted. Rows as JSON.
SELECT to_json(r) FROM (
  SELECT state, count(*) AS count, min(wanted_at) AS oldest
  FROM (SELECT coalesce(p.outcome, 'open') AS state, p.wanted_at
        FROM hapax.replays p JOIN hapax.dead_letters d ON d.id = p.dead_letter
        WHERE d.group_id = $1 ORDER BY p.id DESC LIMIT $2) newest
  GROUP BY state ORDER BY state) r
