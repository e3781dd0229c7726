-- Keys of a range that fit. There is no index on status or age (each would cost every message), so
-- scan_keys.sql has bounded the range before.
-- $1 first key, $2 last key, $3 status or NULL, $4 scope or NULL, $5 tenant or NULL, $6 seconds
-- since the last change or NULL, $7 limit, $8 and $9 NULL, or the scope and tenant of the row with
-- the first key that the rows come behind. Rows by key, as JSON. `answered`: the HTTP status of an
-- answer that a gate has stored, from the text, so that no JSON of a handler is parsed here.
SELECT to_json(r) FROM (
  SELECT key, scope, tenant, status, topic, generation, partition, kafka_offset,
         left(error, 200) AS error, updated_at, expires_at,
         CASE WHEN left(result::text, 19) = '{"hapax:response":{'
              THEN substring(right(result::text, 16) FROM '"status":(\d+)}}$') END AS answered
  FROM hapax.idempotency_keys
  WHERE key >= $1 AND key <= $2 AND ($3::text IS NULL OR status = $3)
    AND ($4::text IS NULL OR scope = $4) AND ($5::text IS NULL OR tenant = $5)
    AND ($8::text IS NULL OR (key, scope, tenant) > ($1, $8, $9))
    AND ($6::double precision IS NULL OR updated_at < now() - make_interval(secs => $6))
  ORDER BY key, scope, tenant LIMIT $7) r
