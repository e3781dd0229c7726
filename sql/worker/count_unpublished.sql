-- How many open dead letters of these topics are not in Kafka, counting at most $3.
-- $1 group, $2 topics. By dead_letters_to_publish.
SELECT count(*) FROM (
  SELECT FROM hapax.dead_letters
  WHERE group_id = $1 AND topic = ANY ($2::text[]) AND published_at IS NULL AND ended_at IS NULL
  LIMIT $3) d
