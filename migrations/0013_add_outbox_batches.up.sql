-- With publish.transactions: the batch of each topic that is on its way to Kafka. It is written before
-- the batch is sent. So whoever takes over knows which records Kafka may have, and asks it.
CREATE TABLE hapax.outbox_batches (
  group_id  text COLLATE "C" NOT NULL,
  topic     text COLLATE "C" NOT NULL,
  number    bigint NOT NULL,                -- of the last batch; it only rises
  token     uuid NOT NULL,                  -- names the batch; Kafka holds it once it has the batch
  follows   uuid NOT NULL,                  -- the token that Kafka held before
  ids       bigint[] NOT NULL,              -- of its records; none: it was settled
  opened_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT outbox_batches_pkey PRIMARY KEY (group_id, topic)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 1000);
