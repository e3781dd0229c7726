-- Other groups that have used these topics, with their scopes.
-- $1 group, $2 topics as a JSON array. A row for each (group, topic, scope), as JSON.
SELECT to_json(r) FROM (
  SELECT DISTINCT group_id, topic, scope FROM hapax.checkpoints
  WHERE group_id <> $1 AND topic IN (SELECT json_array_elements_text($2::json)) ORDER BY 1, 2) r
