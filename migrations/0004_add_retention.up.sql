-- Retention: expired keys are removed in bounded batches by one worker at a time.

-- In the order of insertion nearly always, so that an insert costs little. (A BRIN index is smaller,
-- but its ranges never shrink again once vacuumed pages are filled anew.)
CREATE INDEX idempotency_keys_by_expiry ON hapax.idempotency_keys (expires_at);

-- Who does what only one worker may do. A row and a time instead of an advisory lock: a pooler lets
-- a session's lock outlive its client.
CREATE TABLE hapax.leases (
  name   text COLLATE "C" PRIMARY KEY,
  holder text NOT NULL,
  until  timestamptz NOT NULL
);
