-- The idempotency keys, and the seal that makes a claim and its completion one fact.
--
-- A claim writes its row as it will stand once committed (status 'completed') while the
-- transaction's gate is armed. The deferred trigger below then refuses the COMMIT unless the
-- completion has run last in the same transaction. So no COMMIT of a claim without its completion
-- exists, whoever sends it.

CREATE SCHEMA IF NOT EXISTS hapax;

CREATE TABLE hapax.idempotency_keys (
  key              text COLLATE "C" NOT NULL,
  scope            text COLLATE "C" NOT NULL,
  tenant           text COLLATE "C" NOT NULL DEFAULT '',
  status           text COLLATE "C" NOT NULL
                   CHECK (status IN ('completed', 'failed', 'forgotten', 'started')),
  fingerprint      bytea,
  fingerprint_rule text COLLATE "C",
  group_id         text COLLATE "C" NOT NULL,
  topic            text COLLATE "C" NOT NULL,
  generation       integer NOT NULL,
  partition        integer NOT NULL,
  kafka_offset     bigint NOT NULL,
  result           json,
  duplicates       integer NOT NULL DEFAULT 0,  -- counted only for handlers that want to see them
  error            text,
  created_at       timestamptz NOT NULL DEFAULT now(),
  updated_at       timestamptz NOT NULL DEFAULT now(),
  expires_at       timestamptz NOT NULL,
  -- The selective column leads: on a fresh table without statistics PostgreSQL went through a
  -- leading `scope` alone and read the whole table for every claim.
  CONSTRAINT idempotency_keys_pkey PRIMARY KEY (key, scope, tenant)
);
COMMENT ON TABLE hapax.idempotency_keys IS
  'One row an operation. The coordinates are those of the message that completed (or failed) it.';

CREATE FUNCTION hapax.refuse_unsealed() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF current_setting('hapax.gate', true) IS DISTINCT FROM 'sealed' THEN
    RAISE EXCEPTION 'COMMIT refused: the claim on an idempotency key was not completed by hapax'
      USING ERRCODE = 'HX001',
            HINT = 'A handler must not COMMIT, ROLLBACK, SET CONSTRAINTS or RESET ALL by itself.';
  END IF;
  RETURN NULL;
END $$;

-- Queued by the first row that a claim really writes; the claim's RETURNING then sets the gate to
-- 'queued', so that it is queued once a transaction.
CREATE CONSTRAINT TRIGGER seal AFTER INSERT OR UPDATE ON hapax.idempotency_keys
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
  WHEN (current_setting('hapax.gate', true) = 'arm')
  EXECUTE FUNCTION hapax.refuse_unsealed();

-- The completion: the last statement before COMMIT. Raises unless this is still the transaction
-- that claimed, known by its nonce: a handler that rolled back (AND CHAIN) has lost it.
CREATE FUNCTION hapax.seal(nonce text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF current_setting('hapax.claim', true) IS DISTINCT FROM nonce THEN
    RAISE EXCEPTION 'completion refused: the transaction that claimed the key is gone'
      USING ERRCODE = 'HX002',
            HINT = 'A handler must not COMMIT or ROLLBACK the transaction it was lent.';
  END IF;
  PERFORM set_config('hapax.gate', 'sealed', true);
END $$;
