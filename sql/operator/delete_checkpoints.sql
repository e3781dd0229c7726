-- Decision copy: the checkpoints are the original's. All rows, as JSON.
DELETE FROM hapax.checkpoints c RETURNING to_json(c)
