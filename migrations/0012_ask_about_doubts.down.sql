-- Refuses while an operator is asked: the start after the decision would take later messages for
-- doubtful, too.
-- Locked first: a row whose COMMIT comes meanwhile must be seen.
LOCK TABLE hapax.doubts IN ACCESS EXCLUSIVE MODE;
DO $$
BEGIN
  IF EXISTS (SELECT FROM hapax.doubts WHERE asked IS NOT NULL) THEN
    RAISE EXCEPTION 'a partition stands halted, tail_in_doubt'
      USING HINT = 'End it with hapax resume, and wait until the partition has started.';
  END IF;
END $$;
ALTER TABLE hapax.doubts DROP COLUMN asked, DROP COLUMN asked_run;
