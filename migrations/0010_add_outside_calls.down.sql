-- Refuses while an operation is open: no table could tell any more whether it was called.
-- Locked first: a row whose COMMIT comes meanwhile must be seen.
LOCK TABLE hapax.idempotency_keys IN ACCESS EXCLUSIVE MODE;
DO $$
BEGIN
  IF EXISTS (SELECT FROM hapax.idempotency_keys WHERE expires_at = 'infinity'
             AND status IN ('started', 'answered', 'unknown')) THEN
    RAISE EXCEPTION 'calls to the outside are open'
      USING HINT = 'See `hapax outside list`: wait for them, or decide about them.';
  END IF;
END $$;
DROP TABLE hapax.holders;
ALTER TABLE hapax.idempotency_keys
  DROP CONSTRAINT idempotency_keys_status_check,
  ADD CONSTRAINT idempotency_keys_status_check
    CHECK (status IN ('completed', 'failed', 'forgotten', 'started')) NOT VALID,
  DROP COLUMN holder, DROP COLUMN token, DROP COLUMN called_at, DROP COLUMN calls,
  DROP COLUMN alone, DROP COLUMN crashes, DROP COLUMN answer;
