-- Which log a message is from, and how long a key must be held for what waits in a log.
--
-- Both in tables of their own, so that workers of the schema before go on beside them.

-- The number ("generation") of each log that coordinates can mean. A key made of coordinates holds
-- this number, so groups of one scope must agree on it. Several rows have one number if an operator
-- decided that they are the same log, or if a client could not tell the topic's id.
CREATE TABLE hapax.logs (
  scope      text COLLATE "C" NOT NULL,
  topic      text COLLATE "C" NOT NULL,
  partition  integer NOT NULL,
  cluster_id text COLLATE "C" NOT NULL,
  topic_id   text COLLATE "C" NOT NULL,  -- '': the client could not tell
  generation integer NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT logs_pkey PRIMARY KEY (scope, topic, partition, cluster_id, topic_id)
);

-- Keys that exist keep their names.
INSERT INTO hapax.logs (scope, topic, partition, cluster_id, topic_id, generation)
  SELECT scope, topic, partition, cluster_id, coalesce(topic_id, ''), max(generation)
  FROM hapax.checkpoints WHERE cluster_id IS NOT NULL
  GROUP BY scope, topic, partition, cluster_id, coalesce(topic_id, '');

-- Until when a partition's messages are all settled: each that Kafka's log showed before `until` is
-- below the checkpoint. It counts while the checkpoint has the same epoch: taking or moving the
-- partition raises that. A key is removed only once `until` of all partitions of its scope is
-- later than its expires_at.
CREATE TABLE hapax.passed (
  group_id  text COLLATE "C" NOT NULL,
  topic     text COLLATE "C" NOT NULL,
  partition integer NOT NULL,
  epoch     bigint NOT NULL,
  until     timestamptz NOT NULL,
  CONSTRAINT passed_pkey PRIMARY KEY (group_id, topic, partition)
) WITH (fillfactor = 50);
