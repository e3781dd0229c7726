-- The answers of the steps of a call, by name, and the fingerprint of the payload that they are of. They
-- stay until the operation is done, so that the next call of the operation does not repeat these steps. Of
-- an operation that was refused or given up they stay with its key.

ALTER TABLE hapax.idempotency_keys ADD COLUMN steps json;

-- Also for statements of the schema before, which do not know the column.
CREATE FUNCTION hapax.forget_steps() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NEW.status = 'forgotten' AND OLD.status IN ('started', 'unknown') THEN
    RAISE EXCEPTION 'steps of this call are done, and must not be forgotten'
      USING HINT = 'Decide with `hapax outside decide` of a release of schema 19 or later.';
  END IF;
  NEW.steps := NULL;
  RETURN NEW;
END $$;

CREATE TRIGGER steps BEFORE UPDATE ON hapax.idempotency_keys FOR EACH ROW
  WHEN (OLD.steps IS NOT NULL AND NEW.status NOT IN ('started', 'answered', 'unknown')
        AND (NEW.status <> 'completed' OR NEW.error IS NULL))
  EXECUTE FUNCTION hapax.forget_steps();
