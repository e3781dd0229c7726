-- The next batch of a topic, in the place of the last one, which is settled or was never sent.
-- $1 group, $2 topic, $3 its token, $4 the token and $5 the number that Kafka holds, $6 ids.
-- One row with its number, above both.
INSERT INTO hapax.outbox_batches AS b (group_id, topic, number, token, follows, ids)
VALUES ($1, $2, $5::bigint + 1, $3::uuid, $4::uuid, $6::bigint[])
ON CONFLICT (group_id, topic) DO UPDATE
  SET number = greatest(b.number + 1, excluded.number), token = excluded.token,
      follows = excluded.follows, ids = excluded.ids, opened_at = clock_timestamp()
RETURNING number
