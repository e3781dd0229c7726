DROP TABLE hapax.idempotency_keys;
DROP FUNCTION hapax.refuse_unsealed();
DROP FUNCTION hapax.seal(text);
