-- Where each consumer group stands, who owns a partition, and what stopped.

-- Which database this is. When oid and system identifier differ from what is stored, the database
-- is a logical copy (pg_dump, CREATE DATABASE … TEMPLATE) and hapax halts and asks.
CREATE TABLE hapax.store (
  only_row          boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  id                uuid NOT NULL DEFAULT gen_random_uuid(),
  database_oid      oid NOT NULL,
  system_identifier bigint,
  created_at        timestamptz NOT NULL DEFAULT now()
);
INSERT INTO hapax.store (database_oid, system_identifier)
  SELECT oid, (SELECT system_identifier FROM pg_control_system())
  FROM pg_database WHERE datname = current_database();

-- UNLOGGED on purpose: PostgreSQL empties it at crash recovery, promotion and physical restore,
-- and keeps it over a clean restart. A worker that no longer finds the value it started with knows
-- that the tail of acknowledged commits may be gone, and starts again from its checkpoints.
CREATE UNLOGGED TABLE hapax.incarnation (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  id       uuid NOT NULL DEFAULT gen_random_uuid()
);

CREATE TABLE hapax.checkpoints (
  group_id        text COLLATE "C" NOT NULL,
  topic           text COLLATE "C" NOT NULL,
  partition       integer NOT NULL,
  next_offset     bigint,            -- where to go on; NULL until the first start is agreed
  highest         bigint,            -- the highest next_offset ever reached
  highest_settled bigint,            -- settled out of order beyond next_offset, at a clean leave
  generation      integer NOT NULL DEFAULT 1,
  epoch           bigint NOT NULL DEFAULT 0,
  owner           text,              -- NULL after a clean leave
  key_spec        text COLLATE "C" NOT NULL,
  scope           text COLLATE "C" NOT NULL,
  topic_id        text COLLATE "C",
  cluster_id      text COLLATE "C",
  started_runs    integer NOT NULL DEFAULT 0,
  start_as        text COLLATE "C"   -- what an operator decided for the next start; used up by it
                  CHECK (start_as IN ('checkpoint', 'earliest', 'kafka', 'initial')),
  updated_at      timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT checkpoints_pkey PRIMARY KEY (group_id, topic, partition)
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 500);

CREATE TABLE hapax.halts (
  id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  group_id     text COLLATE "C" NOT NULL,
  topic        text COLLATE "C" NOT NULL,
  partition    integer NOT NULL,     -- where it was seen
  whole_route  boolean NOT NULL,     -- every partition of the topic stops, not only this one
  generation   integer NOT NULL,
  kafka_offset bigint,               -- the message it halted at, where there is one
  reason       text COLLATE "C" NOT NULL,
  detail       text NOT NULL,
  since        timestamptz NOT NULL DEFAULT now(),
  halted_by    text NOT NULL,        -- the worker
  ended_at     timestamptz,
  ended_by     text,
  why          text,
  decision     text COLLATE "C"
);
CREATE UNIQUE INDEX halts_open
  ON hapax.halts (group_id, topic, (CASE WHEN whole_route THEN -1 ELSE partition END))
  WHERE ended_at IS NULL;

-- Who moved, resumed or discarded what, and why. Only ever added to.
CREATE TABLE hapax.operator_log (
  id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at     timestamptz NOT NULL DEFAULT now(),
  who    text NOT NULL,
  action text COLLATE "C" NOT NULL,
  target text NOT NULL,
  why    text NOT NULL,
  facts  json NOT NULL
);
