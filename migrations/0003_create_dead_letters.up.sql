-- Failed runs, and the messages that were given up on.

-- One row a message from its first failed run on. Rows, so that a daily deploy does not start the
-- count again.
CREATE TABLE hapax.attempts (
  group_id     text COLLATE "C" NOT NULL,
  topic        text COLLATE "C" NOT NULL,
  generation   integer NOT NULL,
  partition    integer NOT NULL,
  kafka_offset bigint NOT NULL,
  count        integer NOT NULL,     -- failed runs
  crashes      integer NOT NULL DEFAULT 0,  -- runs that the process did not survive
  last_error   text NOT NULL,
  sqlstate     text COLLATE "C",
  handler      text NOT NULL,
  first_at     timestamptz NOT NULL DEFAULT now(),
  last_at      timestamptz NOT NULL DEFAULT now(),
  next_try     timestamptz NOT NULL,
  CONSTRAINT attempts_pkey PRIMARY KEY (group_id, topic, generation, partition, kafka_offset)
);

CREATE TABLE hapax.dead_letters (
  id                bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  group_id          text COLLATE "C" NOT NULL,
  topic             text COLLATE "C" NOT NULL,
  generation        integer NOT NULL,
  partition         integer NOT NULL,
  kafka_offset      bigint NOT NULL,
  message_timestamp bigint,           -- milliseconds since 1970, as it came; NULL: none
  timestamp_type    text COLLATE "C" NOT NULL
                    CHECK (timestamp_type IN ('none', 'create_time', 'log_append_time')),
  message_key       bytea,            -- NULL is null, '' is empty
  payload           bytea,
  header_names      bytea[] NOT NULL,
  header_values     bytea[] NOT NULL,
  reason            text COLLATE "C" NOT NULL,
  error             text NOT NULL,
  sqlstate          text COLLATE "C",
  attempts          integer NOT NULL,
  handler           text NOT NULL,
  handler_version   text NOT NULL,
  scope             text COLLATE "C" NOT NULL,
  key               text COLLATE "C",  -- NULL: the message has no key
  tenant            text COLLATE "C",
  fingerprint       bytea,
  fingerprint_rule  text COLLATE "C",
  other             json,              -- payload_drift: the message that has the key
  first_at          timestamptz NOT NULL,
  created_at        timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT dead_letters_coordinates
    UNIQUE (group_id, topic, generation, partition, kafka_offset),
  CHECK (cardinality(header_names) = cardinality(header_values))
);
CREATE INDEX dead_letters_by_key ON hapax.dead_letters (key, scope, tenant);
