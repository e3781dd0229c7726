-- Refuses while a call of an edited payload is open, because without its note a decision would run the
-- letter's own payload. The table is locked first, so that a call that begins meanwhile is seen.
LOCK TABLE hapax.replays IN ACCESS EXCLUSIVE MODE;
DO $$
BEGIN
  IF EXISTS (
    SELECT FROM hapax.replays r
    JOIN hapax.idempotency_keys k ON k.key = r.key AND k.tenant = r.tenant AND k.token = r.token
    WHERE r.edited AND k.status IN ('started', 'answered', 'unknown')) THEN
    RAISE EXCEPTION 'a replay with an edited payload has called, and its call is not done'
      USING HINT = 'Let a worker book it, or decide: `hapax outside list`, `hapax outside decide`.';
  END IF;
END $$;
ALTER TABLE hapax.replays DROP COLUMN key, DROP COLUMN tenant, DROP COLUMN token;
