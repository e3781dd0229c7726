-- All open halts over a copied database, of every group: the decision is about the database.
-- Rows; locks them.
SELECT id, topic, partition, whole_route, generation, kafka_offset, reason, detail, since, halted_by
FROM hapax.halts WHERE reason = 'store_copied' AND ended_at IS NULL ORDER BY id FOR UPDATE
