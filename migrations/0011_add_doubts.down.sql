-- Refuses while messages are in doubt: they would be called for as if nothing had been lost.
-- Locked first: a row whose COMMIT comes meanwhile must be seen.
LOCK TABLE hapax.doubts IN ACCESS EXCLUSIVE MODE;
DO $$
BEGIN
  IF EXISTS (SELECT FROM hapax.doubts d LEFT JOIN hapax.checkpoints c USING (group_id, topic, partition)
             WHERE d.decided IS NOT NULL OR d.below > coalesce(c.next_offset, 0)) THEN
    RAISE EXCEPTION 'calls to the outside are in doubt'
      USING HINT = 'Wait until the checkpoints of hapax.checkpoints have passed hapax.doubts.below.';
  END IF;
END $$;
DROP TABLE hapax.doubts;
