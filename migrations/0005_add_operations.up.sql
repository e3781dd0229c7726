-- What operators do to positions and dead letters.

-- Every jump of a partition's position that is not one message after the other, so that what was
-- left out, or came again, can be told afterwards.
CREATE TABLE hapax.position_changes (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at          timestamptz NOT NULL DEFAULT now(),
  group_id    text COLLATE "C" NOT NULL,
  topic       text COLLATE "C" NOT NULL,
  partition   integer NOT NULL,
  generation  integer NOT NULL,
  from_offset bigint,                -- where it would have gone on; NULL: the first start
  to_offset   bigint NOT NULL,
  cause       text COLLATE "C" NOT NULL
              CHECK (cause IN ('first_start', 'foreign_reset', 'log_start', 'decision', 'rewind',
                               'skip')),
  who         text NOT NULL,         -- the operator, or the worker that agreed the start
  why         text NOT NULL
);
CREATE INDEX position_changes_by_partition
  ON hapax.position_changes (group_id, topic, partition, id);

-- A dead letter stays a row for ever, or a redelivery of its message would be unknown.
ALTER TABLE hapax.dead_letters
  ADD COLUMN ended_at  timestamptz,  -- NULL: somebody still has to decide
  ADD COLUMN ended_as  text COLLATE "C" CHECK (ended_as IN ('replayed', 'discarded')),
  ADD COLUMN ended_by  text,
  ADD COLUMN ended_why text;
CREATE INDEX dead_letters_open ON hapax.dead_letters (group_id, id) WHERE ended_at IS NULL;

-- A wanted second run of a dead letter. A worker claims the row, and ends it in the handler's own
-- transaction.
CREATE TABLE hapax.replays (
  id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  dead_letter   bigint NOT NULL REFERENCES hapax.dead_letters (id),
  wanted_at     timestamptz NOT NULL DEFAULT now(),
  who           text NOT NULL,
  why           text NOT NULL,
  edited        boolean NOT NULL DEFAULT false,
  payload       bytea,               -- where edited: what runs instead; the dead letter keeps its own
  runs          integer NOT NULL DEFAULT 0,  -- begun; one that the process did not survive counts
  claimed_by    text COLLATE "C",
  claimed_until timestamptz,
  next_try      timestamptz NOT NULL DEFAULT now(),
  last_error    text,
  sqlstate      text COLLATE "C",
  ended_at      timestamptz,
  outcome       text COLLATE "C"
                CHECK (outcome IN ('completed', 'refused', 'failed', 'cancelled')),
  detail        text
);
CREATE INDEX replays_by_dead_letter ON hapax.replays (dead_letter);
CREATE UNIQUE INDEX replays_open ON hapax.replays (dead_letter) WHERE ended_at IS NULL;
