-- Takes away what `hapax bench` left in hapax's tables; no other groups and scopes begin so.
-- $1 the beginning of its group's and scope's names. No rows. Reads each table whole.
WITH keys AS (DELETE FROM hapax.idempotency_keys WHERE starts_with(scope, $1)),
     halted AS (DELETE FROM hapax.halts WHERE starts_with(group_id, $1)),
     settled AS (DELETE FROM hapax.positions WHERE starts_with(group_id, $1)),
     tried AS (DELETE FROM hapax.attempts WHERE starts_with(group_id, $1)),
     letters AS (DELETE FROM hapax.dead_letters WHERE starts_with(group_id, $1))
DELETE FROM hapax.checkpoints WHERE starts_with(group_id, $1)
