-- Refuses while a batch is on its way, because without its row no relay could tell whether Kafka
-- has it. The table is locked first, so that a row that commits meanwhile is seen.
LOCK TABLE hapax.outbox_batches IN ACCESS EXCLUSIVE MODE;
DO $$
BEGIN
  IF EXISTS (SELECT FROM hapax.outbox_batches WHERE ids <> '{}' OR follows = token) THEN
    RAISE EXCEPTION 'a batch of published records is on its way to Kafka'
      USING HINT = 'Let a worker or `hapax relay` with publish.transactions settle it.';
  END IF;
END $$;
DROP TABLE hapax.outbox_batches;
