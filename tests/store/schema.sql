-- The schema that all migrations make, as pg_dump shows it, for reviews and for the test that
-- holds it. After a new migration: HAPAX_WRITE_SCHEMA=1 hapax_pgtests --gtest_filter='Migrate.*Dump'
CREATE SCHEMA hapax;
CREATE FUNCTION hapax.claim_position(nonce text, in_group text, in_topic text, in_partition integer, in_generation integer, in_epoch bigint, in_offset bigint, in_doubt boolean) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
  PERFORM set_config('hapax.claim', nonce, true), set_config('hapax.gate', 'arm', true);
  IF in_doubt THEN
    PERFORM pg_advisory_xact_lock(hapax.partition_lock(in_group, in_topic, in_partition));
    IF hapax.is_settled(in_group, in_topic, in_partition, in_generation, in_offset) THEN
      RETURN 'settled';
    END IF;
  ELSE
    PERFORM pg_advisory_xact_lock_shared(hapax.partition_lock(in_group, in_topic, in_partition));
  END IF;
  INSERT INTO hapax.positions (group_id, topic, partition, generation, last)
  SELECT in_group, in_topic, in_partition, in_generation, in_offset
  WHERE in_epoch = 0 OR in_epoch = (SELECT e.epoch FROM hapax.epochs e
    WHERE e.group_id = in_group COLLATE "C" AND e.topic = in_topic COLLATE "C"
      AND e.partition = in_partition);
  IF NOT FOUND THEN RETURN 'fenced'; END IF;
  PERFORM set_config('hapax.gate', 'queued', true);
  RETURN 'taken';
END $$;
CREATE FUNCTION hapax.claim_positions(nonce text, in_group text, in_topic text, partitions integer[], generations integer[], epochs bigint[], lasts bigint[], earlier text[]) RETURNS SETOF integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
  PERFORM set_config('hapax.claim', nonce, true), set_config('hapax.gate', 'arm', true);
  PERFORM pg_advisory_xact_lock_shared(hapax.partition_lock(in_group, in_topic, p))
  FROM unnest(partitions) AS p;
  RETURN QUERY
    INSERT INTO hapax.positions AS written (group_id, topic, partition, generation, last, earlier)
    SELECT in_group, in_topic, d.p, d.generation, d.last, d.others::integer[]
    FROM unnest(partitions, generations, epochs, lasts, earlier)
      AS d (p, generation, epoch, last, others)
    WHERE d.epoch = 0 OR d.epoch = (SELECT e.epoch FROM hapax.epochs e
      WHERE e.group_id = in_group COLLATE "C" AND e.topic = in_topic COLLATE "C" AND e.partition = d.p)
    RETURNING written.partition;
  PERFORM set_config('hapax.gate', 'queued', true);
END $$;
CREATE FUNCTION hapax.count_outbox() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO hapax.outbox_counts (group_id, topic, what, records)
    SELECT group_id, topic, 'published', count(*) FROM changed GROUP BY group_id, topic;
    RETURN NULL;
  END IF;
  -- What a relay removes was sent. Its transaction has locked the lease of its group. Operators' orders
  -- tell what they do.
  INSERT INTO hapax.outbox_counts (group_id, topic, what, records, by)
  SELECT c.group_id, c.topic, c.what, c.records,
         CASE c.what WHEN 'removed' THEN format('role %s, application_name "%s", ids %s to %s',
           session_user, current_setting('application_name'), c.low, c.high) END
  FROM (
    SELECT r.group_id, r.topic, r.records, r.low, r.high, CASE
             WHEN EXISTS (SELECT FROM hapax.leases l WHERE l.name = 'outbox of ' || r.group_id
                            AND pg_current_xact_id()::xid IN (l.xmin, l.xmax)) THEN 'sent'
             ELSE coalesce(nullif(current_setting('hapax.removes', true), ''), 'removed') END AS what
    FROM (SELECT group_id, topic, count(*) AS records, min(id) AS low, max(id) AS high
          FROM changed GROUP BY group_id, topic) r) c;
  RETURN NULL;
END $$;
CREATE FUNCTION hapax.fold_outbox_counts(in_group text) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
  WITH many AS (
    SELECT topic, what FROM hapax.outbox_counts WHERE group_id = in_group COLLATE "C" AND what <> 'removed'
    GROUP BY topic, what HAVING count(*) > 100
  ), folded AS (
    DELETE FROM hapax.outbox_counts c USING many
    WHERE c.group_id = in_group COLLATE "C" AND c.topic = many.topic AND c.what = many.what
    RETURNING c.topic, c.what, c.records, c.at
  )
  INSERT INTO hapax.outbox_counts (group_id, topic, what, records, at)
  SELECT in_group, topic, what, sum(records)::bigint, min(at) FROM folded GROUP BY topic, what
$$;
CREATE FUNCTION hapax.forget_steps() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
  IF NEW.status = 'forgotten' AND OLD.status IN ('started', 'unknown') THEN
    RAISE EXCEPTION 'steps of this call are done, and must not be forgotten'
      USING HINT = 'Decide with `hapax outside decide` of a release of schema 19 or later.';
  END IF;
  NEW.steps := NULL;
  RETURN NEW;
END $$;
CREATE FUNCTION hapax.is_settled(in_group text, in_topic text, in_partition integer, in_generation integer, in_offset bigint) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
  SELECT EXISTS (
    SELECT FROM hapax.positions
    WHERE group_id = in_group COLLATE "C" AND topic = in_topic COLLATE "C" AND partition = in_partition
      AND generation = in_generation AND last >= in_offset
      AND (last = in_offset OR last - in_offset = ANY (earlier)))
$$;
CREATE FUNCTION hapax.note_epoch() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN
    DELETE FROM hapax.epochs
    WHERE group_id = OLD.group_id AND topic = OLD.topic AND partition = OLD.partition
      AND (TG_OP = 'DELETE' OR (group_id, topic, partition) IS DISTINCT FROM
                               (NEW.group_id, NEW.topic, NEW.partition));
  END IF;
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO hapax.epochs AS e (group_id, topic, partition, epoch)
    VALUES (NEW.group_id, NEW.topic, NEW.partition, NEW.epoch)
    ON CONFLICT (group_id, topic, partition) DO UPDATE SET epoch = excluded.epoch;
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION hapax.note_forgotten() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
  INSERT INTO hapax.forgotten AS f (scope, until)
    SELECT scope, max(updated_at) FROM gone WHERE status = 'completed' GROUP BY scope ORDER BY scope
  ON CONFLICT (scope) DO UPDATE SET until = excluded.until WHERE f.until < excluded.until;
  RETURN NULL;
END $$;
CREATE FUNCTION hapax.partition_lock(group_id text, topic text, partition integer) RETURNS bigint
    LANGUAGE sql IMMUTABLE
    AS $_$
  SELECT pg_catalog.hashtextextended(pg_catalog.concat_ws(pg_catalog.chr(1), 'hapax', $1, $2, $3), 0)
$_$;
CREATE FUNCTION hapax.refuse_unsealed() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog'
    AS $$
BEGIN
  IF current_setting('hapax.gate', true) IS DISTINCT FROM 'sealed' THEN
    RAISE EXCEPTION 'COMMIT refused: the claim on an idempotency key was not completed by hapax'
      USING ERRCODE = 'HX001',
            HINT = 'A handler must not COMMIT, ROLLBACK, SET CONSTRAINTS or RESET ALL by itself.';
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION hapax.seal(nonce text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog'
    AS $$
BEGIN
  IF current_setting('hapax.claim', true) IS DISTINCT FROM nonce THEN
    RAISE EXCEPTION 'completion refused: the transaction that claimed the key is gone'
      USING ERRCODE = 'HX002',
            HINT = 'A handler must not COMMIT or ROLLBACK the transaction it was lent.';
  END IF;
  PERFORM set_config('hapax.gate', 'sealed', true);
END $$;
CREATE TABLE hapax.attempts (
    group_id text NOT NULL COLLATE pg_catalog."C",
    topic text NOT NULL COLLATE pg_catalog."C",
    generation integer NOT NULL,
    partition integer NOT NULL,
    kafka_offset bigint NOT NULL,
    count integer NOT NULL,
    crashes integer DEFAULT 0 NOT NULL,
    last_error text NOT NULL,
    sqlstate text COLLATE pg_catalog."C",
    handler text NOT NULL,
    first_at timestamp with time zone DEFAULT now() NOT NULL,
    last_at timestamp with time zone DEFAULT now() NOT NULL,
    next_try timestamp with time zone NOT NULL
);
CREATE TABLE hapax.checkpoints (
    group_id text NOT NULL COLLATE pg_catalog."C",
    topic text NOT NULL COLLATE pg_catalog."C",
    partition integer NOT NULL,
    next_offset bigint,
    highest bigint,
    highest_settled bigint,
    generation integer DEFAULT 1 NOT NULL,
    epoch bigint DEFAULT 0 NOT NULL,
    owner text,
    key_spec text NOT NULL COLLATE pg_catalog."C",
    scope text NOT NULL COLLATE pg_catalog."C",
    topic_id text COLLATE pg_catalog."C",
    cluster_id text COLLATE pg_catalog."C",
    started_runs integer DEFAULT 0 NOT NULL,
    start_as text COLLATE pg_catalog."C",
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    last_record text,
    CONSTRAINT checkpoints_start_as_check CHECK ((start_as = ANY (ARRAY['checkpoint'::text, 'earliest'::text, 'kafka'::text, 'initial'::text])))
)
WITH (fillfactor='20', autovacuum_vacuum_scale_factor='0.0', autovacuum_vacuum_threshold='500');
CREATE TABLE hapax.dead_letters (
    id bigint NOT NULL,
    group_id text NOT NULL COLLATE pg_catalog."C",
    topic text NOT NULL COLLATE pg_catalog."C",
    generation integer NOT NULL,
    partition integer NOT NULL,
    kafka_offset bigint NOT NULL,
    message_timestamp bigint,
    timestamp_type text NOT NULL COLLATE pg_catalog."C",
    message_key bytea,
    payload bytea,
    header_names bytea[] NOT NULL,
    header_values bytea[] NOT NULL,
    reason text NOT NULL COLLATE pg_catalog."C",
    error text NOT NULL,
    sqlstate text COLLATE pg_catalog."C",
    attempts integer NOT NULL,
    handler text NOT NULL,
    handler_version text NOT NULL,
    scope text NOT NULL COLLATE pg_catalog."C",
    key text COLLATE pg_catalog."C",
    tenant text COLLATE pg_catalog."C",
    fingerprint bytea,
    fingerprint_rule text COLLATE pg_catalog."C",
    other json,
    first_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    ended_at timestamp with time zone,
    ended_as text COLLATE pg_catalog."C",
    ended_by text,
    ended_why text,
    published_at timestamp with time zone,
    CONSTRAINT dead_letters_check CHECK ((cardinality(header_names) = cardinality(header_values))),
    CONSTRAINT dead_letters_ended_as_check CHECK ((ended_as = ANY (ARRAY['replayed'::text, 'discarded'::text]))),
    CONSTRAINT dead_letters_timestamp_type_check CHECK ((timestamp_type = ANY (ARRAY['none'::text, 'create_time'::text, 'log_append_time'::text])))
);
ALTER TABLE hapax.dead_letters ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME hapax.dead_letters_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE hapax.doubts (
    group_id text NOT NULL COLLATE pg_catalog."C",
    topic text NOT NULL COLLATE pg_catalog."C",
    partition integer NOT NULL,
    below bigint DEFAULT 0 NOT NULL,
    decided text COLLATE pg_catalog."C",
    asked bigint,
    asked_run bigint,
    CONSTRAINT doubts_decided_check CHECK ((decided = ANY (ARRAY['call'::text, 'as_unknown'::text])))
);
CREATE TABLE hapax.epochs (
    group_id text NOT NULL COLLATE pg_catalog."C",
    topic text NOT NULL COLLATE pg_catalog."C",
    partition integer NOT NULL,
    epoch bigint NOT NULL
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.0', autovacuum_vacuum_threshold='500');
CREATE TABLE hapax.forgotten (
    scope text NOT NULL COLLATE pg_catalog."C",
    until timestamp with time zone NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE hapax.halts (
    id bigint NOT NULL,
    group_id text NOT NULL COLLATE pg_catalog."C",
    topic text NOT NULL COLLATE pg_catalog."C",
    partition integer NOT NULL,
    whole_route boolean NOT NULL,
    generation integer NOT NULL,
    kafka_offset bigint,
    reason text NOT NULL COLLATE pg_catalog."C",
    detail text NOT NULL,
    since timestamp with time zone DEFAULT now() NOT NULL,
    halted_by text NOT NULL,
    ended_at timestamp with time zone,
    ended_by text,
    why text,
    decision text COLLATE pg_catalog."C"
);
ALTER TABLE hapax.halts ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME hapax.halts_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE hapax.holders (
    id bigint NOT NULL,
    group_id text NOT NULL COLLATE pg_catalog."C",
    worker text NOT NULL,
    until timestamp with time zone NOT NULL
)
WITH (fillfactor='50');
ALTER TABLE hapax.holders ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME hapax.holders_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE hapax.idempotency_keys (
    key text NOT NULL COLLATE pg_catalog."C",
    scope text NOT NULL COLLATE pg_catalog."C",
    tenant text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    fingerprint bytea,
    fingerprint_rule text COLLATE pg_catalog."C",
    group_id text NOT NULL COLLATE pg_catalog."C",
    topic text NOT NULL COLLATE pg_catalog."C",
    generation integer NOT NULL,
    partition integer NOT NULL,
    kafka_offset bigint NOT NULL,
    result json,
    duplicates integer DEFAULT 0 NOT NULL,
    error text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    holder bigint,
    token bigint,
    called_at timestamp with time zone,
    calls integer,
    alone boolean,
    crashes integer,
    answer json,
    steps json
);
COMMENT ON TABLE hapax.idempotency_keys IS 'One row an operation. The coordinates are those of the message that completed (or failed) it.';
CREATE UNLOGGED TABLE hapax.incarnation (
    only_row boolean DEFAULT true NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    CONSTRAINT incarnation_only_row_check CHECK (only_row)
);
CREATE TABLE hapax.leases (
    name text NOT NULL COLLATE pg_catalog."C",
    holder text NOT NULL,
    until timestamp with time zone NOT NULL,
    epoch bigint DEFAULT 0 NOT NULL
);
CREATE TABLE hapax.logs (
    scope text NOT NULL COLLATE pg_catalog."C",
    topic text NOT NULL COLLATE pg_catalog."C",
    partition integer NOT NULL,
    cluster_id text NOT NULL COLLATE pg_catalog."C",
    topic_id text NOT NULL COLLATE pg_catalog."C",
    generation integer NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE hapax.operator_log (
    id bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    who text NOT NULL,
    action text NOT NULL COLLATE pg_catalog."C",
    target text NOT NULL,
    why text NOT NULL,
    facts json NOT NULL
);
ALTER TABLE hapax.operator_log ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME hapax.operator_log_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE hapax.outbox (
    id bigint NOT NULL,
    group_id text NOT NULL COLLATE pg_catalog."C",
    topic text NOT NULL COLLATE pg_catalog."C",
    record_key bytea,
    payload bytea,
    headers json NOT NULL,
    idempotency_key text NOT NULL COLLATE pg_catalog."C",
    source_topic text NOT NULL COLLATE pg_catalog."C",
    source_generation integer NOT NULL,
    source_partition integer NOT NULL,
    source_offset bigint NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.0', autovacuum_vacuum_threshold='10000');
CREATE TABLE hapax.outbox_batches (
    group_id text NOT NULL COLLATE pg_catalog."C",
    topic text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    token uuid NOT NULL,
    follows uuid NOT NULL,
    ids bigint[] NOT NULL,
    opened_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.0', autovacuum_vacuum_threshold='1000');
CREATE TABLE hapax.outbox_clusters (
    group_id text NOT NULL COLLATE pg_catalog."C",
    cluster_id text NOT NULL COLLATE pg_catalog."C",
    noted_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE hapax.outbox_counts (
    group_id text NOT NULL COLLATE pg_catalog."C",
    topic text NOT NULL COLLATE pg_catalog."C",
    what text NOT NULL COLLATE pg_catalog."C",
    records bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    by text
)
WITH (autovacuum_vacuum_scale_factor='0.0', autovacuum_vacuum_threshold='10000');
CREATE TABLE hapax.outbox_halts (
    id bigint NOT NULL,
    group_id text NOT NULL COLLATE pg_catalog."C",
    topic text NOT NULL COLLATE pg_catalog."C",
    row_id bigint,
    record_key bytea,
    reason text NOT NULL COLLATE pg_catalog."C",
    detail text NOT NULL,
    since timestamp with time zone DEFAULT now() NOT NULL,
    halted_by text NOT NULL,
    ended_at timestamp with time zone,
    ended_by text,
    why text,
    decision text COLLATE pg_catalog."C",
    CONSTRAINT outbox_halts_decision_check CHECK ((decision = ANY (ARRAY['retry'::text, 'skip'::text])))
);
ALTER TABLE hapax.outbox_halts ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME hapax.outbox_halts_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE hapax.outbox ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME hapax.outbox_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE hapax.passed (
    group_id text NOT NULL COLLATE pg_catalog."C",
    topic text NOT NULL COLLATE pg_catalog."C",
    partition integer NOT NULL,
    epoch bigint NOT NULL,
    until timestamp with time zone NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE hapax.position_changes (
    id bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    group_id text NOT NULL COLLATE pg_catalog."C",
    topic text NOT NULL COLLATE pg_catalog."C",
    partition integer NOT NULL,
    generation integer NOT NULL,
    from_offset bigint,
    to_offset bigint NOT NULL,
    cause text NOT NULL COLLATE pg_catalog."C",
    who text NOT NULL,
    why text NOT NULL,
    CONSTRAINT position_changes_cause_check CHECK ((cause = ANY (ARRAY['first_start'::text, 'foreign_reset'::text, 'log_start'::text, 'decision'::text, 'rewind'::text, 'skip'::text])))
);
ALTER TABLE hapax.position_changes ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME hapax.position_changes_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE hapax.positions (
    group_id text NOT NULL COLLATE pg_catalog."C",
    topic text NOT NULL COLLATE pg_catalog."C",
    partition integer NOT NULL,
    generation integer NOT NULL,
    last bigint NOT NULL,
    earlier integer[]
)
WITH (autovacuum_vacuum_scale_factor='0.0', autovacuum_vacuum_threshold='5000', vacuum_truncate='false');
CREATE TABLE hapax.replays (
    id bigint NOT NULL,
    dead_letter bigint NOT NULL,
    wanted_at timestamp with time zone DEFAULT now() NOT NULL,
    who text NOT NULL,
    why text NOT NULL,
    edited boolean DEFAULT false NOT NULL,
    payload bytea,
    runs integer DEFAULT 0 NOT NULL,
    claimed_by text COLLATE pg_catalog."C",
    claimed_until timestamp with time zone,
    next_try timestamp with time zone DEFAULT now() NOT NULL,
    last_error text,
    sqlstate text COLLATE pg_catalog."C",
    ended_at timestamp with time zone,
    outcome text COLLATE pg_catalog."C",
    detail text,
    key text COLLATE pg_catalog."C",
    tenant text COLLATE pg_catalog."C",
    token bigint,
    CONSTRAINT replays_outcome_check CHECK ((outcome = ANY (ARRAY['completed'::text, 'refused'::text, 'failed'::text, 'cancelled'::text])))
);
ALTER TABLE hapax.replays ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME hapax.replays_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE hapax.schema_migrations (
    number integer NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE hapax.store (
    only_row boolean DEFAULT true NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    database_oid oid NOT NULL,
    system_identifier bigint,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT store_only_row_check CHECK (only_row)
);
ALTER TABLE ONLY hapax.attempts
    ADD CONSTRAINT attempts_pkey PRIMARY KEY (group_id, topic, generation, partition, kafka_offset);
ALTER TABLE ONLY hapax.checkpoints
    ADD CONSTRAINT checkpoints_pkey PRIMARY KEY (group_id, topic, partition);
ALTER TABLE ONLY hapax.dead_letters
    ADD CONSTRAINT dead_letters_coordinates UNIQUE (group_id, topic, generation, partition, kafka_offset);
ALTER TABLE ONLY hapax.dead_letters
    ADD CONSTRAINT dead_letters_pkey PRIMARY KEY (id);
ALTER TABLE ONLY hapax.doubts
    ADD CONSTRAINT doubts_pkey PRIMARY KEY (group_id, topic, partition);
ALTER TABLE ONLY hapax.epochs
    ADD CONSTRAINT epochs_pkey PRIMARY KEY (group_id, topic, partition);
ALTER TABLE ONLY hapax.forgotten
    ADD CONSTRAINT forgotten_pkey PRIMARY KEY (scope);
ALTER TABLE ONLY hapax.halts
    ADD CONSTRAINT halts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY hapax.holders
    ADD CONSTRAINT holders_pkey PRIMARY KEY (id);
ALTER TABLE ONLY hapax.idempotency_keys
    ADD CONSTRAINT idempotency_keys_pkey PRIMARY KEY (key, scope, tenant);
ALTER TABLE ONLY hapax.incarnation
    ADD CONSTRAINT incarnation_pkey PRIMARY KEY (only_row);
ALTER TABLE ONLY hapax.leases
    ADD CONSTRAINT leases_pkey PRIMARY KEY (name);
ALTER TABLE ONLY hapax.logs
    ADD CONSTRAINT logs_pkey PRIMARY KEY (scope, topic, partition, cluster_id, topic_id);
ALTER TABLE ONLY hapax.operator_log
    ADD CONSTRAINT operator_log_pkey PRIMARY KEY (id);
ALTER TABLE ONLY hapax.outbox_batches
    ADD CONSTRAINT outbox_batches_pkey PRIMARY KEY (group_id, topic);
ALTER TABLE ONLY hapax.outbox_clusters
    ADD CONSTRAINT outbox_clusters_pkey PRIMARY KEY (group_id);
ALTER TABLE ONLY hapax.outbox_halts
    ADD CONSTRAINT outbox_halts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY hapax.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (group_id, topic, id);
ALTER TABLE ONLY hapax.passed
    ADD CONSTRAINT passed_pkey PRIMARY KEY (group_id, topic, partition);
ALTER TABLE ONLY hapax.position_changes
    ADD CONSTRAINT position_changes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY hapax.positions
    ADD CONSTRAINT positions_pkey PRIMARY KEY (group_id, topic, partition, generation, last);
ALTER TABLE ONLY hapax.replays
    ADD CONSTRAINT replays_pkey PRIMARY KEY (id);
ALTER TABLE ONLY hapax.schema_migrations
    ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (number);
ALTER TABLE ONLY hapax.store
    ADD CONSTRAINT store_pkey PRIMARY KEY (only_row);
CREATE INDEX dead_letters_by_key ON hapax.dead_letters USING btree (key, scope, tenant);
CREATE INDEX dead_letters_open ON hapax.dead_letters USING btree (group_id, id) WHERE (ended_at IS NULL);
CREATE INDEX dead_letters_to_publish ON hapax.dead_letters USING btree (group_id, topic, id) WHERE ((published_at IS NULL) AND (ended_at IS NULL));
CREATE UNIQUE INDEX halts_open ON hapax.halts USING btree (group_id, topic, (
CASE
    WHEN whole_route THEN '-1'::integer
    ELSE partition
END)) WHERE (ended_at IS NULL);
CREATE INDEX idempotency_keys_by_expiry ON hapax.idempotency_keys USING btree (expires_at);
CREATE UNIQUE INDEX outbox_halts_open ON hapax.outbox_halts USING btree (group_id, topic, COALESCE(row_id, ('-1'::integer)::bigint)) WHERE (ended_at IS NULL);
CREATE INDEX position_changes_by_partition ON hapax.position_changes USING btree (group_id, topic, partition, id);
CREATE INDEX replays_by_dead_letter ON hapax.replays USING btree (dead_letter);
CREATE UNIQUE INDEX replays_open ON hapax.replays USING btree (dead_letter) WHERE (ended_at IS NULL);
CREATE TRIGGER count_published AFTER INSERT ON hapax.outbox REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION hapax.count_outbox();
CREATE TRIGGER count_removed AFTER DELETE ON hapax.outbox REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION hapax.count_outbox();
CREATE TRIGGER epochs AFTER INSERT OR DELETE OR UPDATE OF epoch, group_id, topic, partition ON hapax.checkpoints FOR EACH ROW EXECUTE FUNCTION hapax.note_epoch();
CREATE TRIGGER forgotten AFTER DELETE ON hapax.idempotency_keys REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION hapax.note_forgotten();
CREATE CONSTRAINT TRIGGER seal AFTER INSERT OR UPDATE ON hapax.idempotency_keys DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN ((current_setting('hapax.gate'::text, true) = 'arm'::text)) EXECUTE FUNCTION hapax.refuse_unsealed();
CREATE CONSTRAINT TRIGGER seal AFTER INSERT ON hapax.positions DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN ((current_setting('hapax.gate'::text, true) = 'arm'::text)) EXECUTE FUNCTION hapax.refuse_unsealed();
CREATE TRIGGER steps BEFORE UPDATE ON hapax.idempotency_keys FOR EACH ROW WHEN (((old.steps IS NOT NULL) AND (new.status <> ALL (ARRAY['started'::text, 'answered'::text, 'unknown'::text])) AND ((new.status <> 'completed'::text) OR (new.error IS NULL)))) EXECUTE FUNCTION hapax.forget_steps();
ALTER TABLE ONLY hapax.replays
    ADD CONSTRAINT replays_dead_letter_fkey FOREIGN KEY (dead_letter) REFERENCES hapax.dead_letters(id);
