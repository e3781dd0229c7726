-- Decision copy: the checkpoints and positions are the original's. All checkpoints, as JSON.
WITH settled AS (DELETE FROM hapax.positions)
DELETE FROM hapax.checkpoints c RETURNING to_json(c)
