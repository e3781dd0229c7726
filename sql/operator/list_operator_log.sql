-- What operators did, of all groups, newest first. $1 below this id, $2 part of who, action, target or
-- why, or NULL; $3 limit. Rows as JSON; facts are cut, because an order may name 20,000 letters.
SELECT to_json(r) FROM (
  SELECT id, at, who, action, target, why, left(facts::text, 1000) AS facts,
         length(facts::text) > 1000 AS cut
  FROM hapax.operator_log
  WHERE id < $1
    AND ($2::text IS NULL OR position($2 IN concat_ws(E'\n', who, action, target, why)) > 0)
  ORDER BY id DESC LIMIT $3) r
