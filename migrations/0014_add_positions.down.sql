-- Refuses while rows stand: without them, what was settled ahead of a checkpoint would run again.
-- Locked first: a row whose COMMIT comes meanwhile must be seen.
LOCK TABLE hapax.positions IN ACCESS EXCLUSIVE MODE;
DO $$
BEGIN
  IF EXISTS (SELECT FROM hapax.positions) THEN
    RAISE EXCEPTION 'a route with key "position" has settled messages ahead of its checkpoint'
      USING HINT = 'Drain it and stop its workers with SIGTERM, or delete the rows of a group that is gone.';
  END IF;
END $$;
DROP FUNCTION hapax.claim_positions(text, text, text, integer[], integer[], bigint[], bigint[], text[]);
DROP FUNCTION hapax.claim_position(text, text, text, integer, integer, bigint, bigint, boolean);
DROP FUNCTION hapax.is_settled(text, text, integer, integer, bigint);
DROP TABLE hapax.positions;
DROP FUNCTION hapax.partition_lock(text, text, integer);
