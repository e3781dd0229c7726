-- How many open dead letters of these topics are not in Kafka, counting at most $3: those that are not in
-- the outbox yet, by dead_letters_to_publish, and those in it, which have no idempotency key.
-- $1 group, $2 topics, $4 the topics to which they go.
SELECT count(*) FROM (
  (SELECT FROM hapax.dead_letters
   WHERE group_id = $1 AND topic = ANY ($2::text[]) AND published_at IS NULL AND ended_at IS NULL
   LIMIT $3)
  UNION ALL
  (SELECT FROM hapax.outbox
   WHERE group_id = $1 AND topic = ANY ($4::text[]) AND idempotency_key = '' LIMIT $3)
  LIMIT $3) d
