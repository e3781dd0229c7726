DROP TRIGGER count_published ON hapax.outbox;
DROP TRIGGER count_removed ON hapax.outbox;
DROP FUNCTION hapax.count_outbox();
DROP FUNCTION hapax.fold_outbox_counts(text);
DROP TABLE hapax.outbox_counts;
