-- Operations that call to the outside: who calls now, and what became of the calls before.

-- The old condition was stricter, so no row needs to be looked at again.
ALTER TABLE hapax.idempotency_keys
  DROP CONSTRAINT idempotency_keys_status_check,
  ADD CONSTRAINT idempotency_keys_status_check
    CHECK (status IN ('completed', 'failed', 'forgotten', 'started', 'answered', 'unknown'))
    NOT VALID,
  -- Only of an outside operation, from its first take on. While the status is `started`, `answered`
  -- or `unknown`, expires_at is 'infinity', so retention keeps the key.
  ADD COLUMN holder    bigint,       -- of `started`: who may call; NULL: free to be taken
  ADD COLUMN token     bigint,       -- raised by each take; a write with an older one misses
  ADD COLUMN called_at timestamptz,  -- when the first call was begun
  ADD COLUMN calls     integer,      -- takes that may have called
  ADD COLUMN alone     boolean,      -- the process did nothing else meanwhile
  ADD COLUMN crashes   integer,      -- takes alone that the process did not survive
  ADD COLUMN answer    json;         -- of `answered`; of `unknown`, if it came too late

-- A process that calls. It may until its lease ends; no row: it may not.
CREATE TABLE hapax.holders (
  id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  group_id text COLLATE "C" NOT NULL,
  worker   text NOT NULL,
  until    timestamptz NOT NULL
) WITH (fillfactor = 50);
