-- How many operations of a scope wait for an operator, counted up to 10,000. $1 scopes. One row.
SELECT count(*) FROM (
  SELECT FROM hapax.idempotency_keys
  WHERE expires_at = 'infinity' AND status = 'unknown' AND scope = ANY ($1::text[]) LIMIT 10000) u
