-- Dead letters may also go to a Kafka topic, from the committed row.

-- A mark on each instead of "all up to this id": ids are given before their rows commit, so one that
-- commits late would be passed over. An ended letter needs nobody any more, and is not published.
ALTER TABLE hapax.dead_letters ADD COLUMN published_at timestamptz;  -- NULL: not (yet)
CREATE INDEX dead_letters_to_publish ON hapax.dead_letters (group_id, topic, id)
  WHERE published_at IS NULL AND ended_at IS NULL;
