-- Whether the schema is new enough to keep the last record below a checkpoint. One row.
SELECT EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'hapax.checkpoints'::regclass
               AND attname = 'last_record' AND NOT attisdropped)
