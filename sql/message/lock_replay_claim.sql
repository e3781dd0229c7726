-- Whether a replay is still this run's, directly before it takes a key to call. Its claim may have run out
-- meanwhile, and an operator may then have cancelled it and discarded its letter.
-- $1 replay, $2 its runs as claimed. One row, or none. Locks it until the end of the transaction, so that
-- neither happens beside the take.
SELECT FROM hapax.replays WHERE id = $1 AND runs = $2 AND ended_at IS NULL FOR UPDATE
