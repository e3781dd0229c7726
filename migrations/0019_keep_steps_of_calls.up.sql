-- The answers of the steps of a call that is open, by name. They stay until the operation is done, so
-- that the next call of the operation does not repeat these steps.

ALTER TABLE hapax.idempotency_keys ADD COLUMN steps json;

-- Also for statements of workers of the schema before, which do not know the column.
CREATE FUNCTION hapax.forget_steps() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  NEW.steps := NULL;
  RETURN NEW;
END $$;

CREATE TRIGGER steps BEFORE UPDATE ON hapax.idempotency_keys FOR EACH ROW
  WHEN (OLD.steps IS NOT NULL AND NEW.status NOT IN ('started', 'answered', 'unknown'))
  EXECUTE FUNCTION hapax.forget_steps();
