-- What this transaction removes from the outbox counts as $1: skipped, or left to the original. One row.
SELECT set_config('hapax.removes', $1, true)
