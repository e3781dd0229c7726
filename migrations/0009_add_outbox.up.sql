-- Records that handlers publish, and who sends them to Kafka.

-- A row is written in the handler's transaction and removed once Kafka has acknowledged it. Each
-- topic is read by itself in the order of ids, so that none waits behind another one's rows.
CREATE TABLE hapax.outbox (
  id                bigint GENERATED ALWAYS AS IDENTITY,
  group_id          text COLLATE "C" NOT NULL,
  topic             text COLLATE "C" NOT NULL,
  record_key        bytea,
  payload           bytea,
  headers           json NOT NULL,         -- [[name, value], …]; a value that is not UTF-8: {"hex": …}
  idempotency_key   text COLLATE "C" NOT NULL,
  source_topic      text COLLATE "C" NOT NULL,
  source_generation integer NOT NULL,
  source_partition  integer NOT NULL,
  source_offset     bigint NOT NULL,
  created_at        timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT outbox_pkey PRIMARY KEY (group_id, topic, id)
) WITH (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 10000);

-- What the relay stopped sending, until an operator decides.
CREATE TABLE hapax.outbox_halts (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  group_id   text COLLATE "C" NOT NULL,
  topic      text COLLATE "C" NOT NULL,
  row_id     bigint,                       -- the record that Kafka refuses; NULL: the whole topic
  record_key bytea,                        -- later records with this key wait, too
  reason     text COLLATE "C" NOT NULL,
  detail     text NOT NULL,
  since      timestamptz NOT NULL DEFAULT now(),
  halted_by  text NOT NULL,                -- the relay
  ended_at   timestamptz,
  ended_by   text,
  why        text,
  decision   text COLLATE "C" CHECK (decision IN ('retry', 'skip'))
);
CREATE UNIQUE INDEX outbox_halts_open ON hapax.outbox_halts (group_id, topic, (coalesce(row_id, -1)))
  WHERE ended_at IS NULL;

-- Raised with each take-over of a lease that fences its former holder.
ALTER TABLE hapax.leases ADD COLUMN epoch bigint NOT NULL DEFAULT 0;
