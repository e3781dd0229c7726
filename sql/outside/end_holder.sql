-- The holder calls no more, so others need not wait for its lease. $1 holder. No rows.
DELETE FROM hapax.holders WHERE id = $1
