-- Partitions of routes that call to the outside, at whose start PostgreSQL had lost its tail. Calls
-- for the messages from the start up to `below` may have happened without a trace.
CREATE TABLE hapax.doubts (
  group_id text COLLATE "C" NOT NULL,
  topic text COLLATE "C" NOT NULL,
  partition integer NOT NULL,
  below bigint NOT NULL DEFAULT 0,  -- an offset; 0: nothing is in doubt
  decided text COLLATE "C" CHECK (decided IN ('call', 'as_unknown')),  -- for the next start
  PRIMARY KEY (group_id, topic, partition)
);
