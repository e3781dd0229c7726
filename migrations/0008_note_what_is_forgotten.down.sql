DROP TRIGGER forgotten ON hapax.idempotency_keys;
DROP FUNCTION hapax.note_forgotten();
DROP TABLE hapax.forgotten;
