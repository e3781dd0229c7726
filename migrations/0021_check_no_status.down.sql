ALTER TABLE hapax.outbox_counts ADD CONSTRAINT outbox_counts_what_check
  CHECK (what IN ('published', 'sent', 'skipped', 'left', 'removed')) NOT VALID;
ALTER TABLE hapax.idempotency_keys ADD CONSTRAINT idempotency_keys_status_check
  CHECK (status IN ('completed', 'failed', 'forgotten', 'started', 'answered', 'unknown')) NOT VALID;
