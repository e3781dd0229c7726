-- Refuses while a step is kept, because the next call of its operation would repeat the step. The table
-- is locked first, so that a step that is kept meanwhile is seen.
LOCK TABLE hapax.idempotency_keys IN ACCESS EXCLUSIVE MODE;
DO $$
BEGIN
  IF EXISTS (SELECT FROM hapax.idempotency_keys WHERE expires_at = 'infinity' AND steps IS NOT NULL) THEN
    RAISE EXCEPTION 'a call that is not done has kept the answer of a step'
      USING HINT = 'Let a worker finish it, or decide: `hapax outside list`, `hapax outside decide`.';
  END IF;
END $$;
DROP TRIGGER steps ON hapax.idempotency_keys;
DROP FUNCTION hapax.forget_steps();
ALTER TABLE hapax.idempotency_keys DROP COLUMN steps;
