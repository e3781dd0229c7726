-- A clean leave: nothing of this partition is running any more, and what was settled is there still (else
-- another owner may have the same epoch).
-- $1 group, $2 topic, $3 partition, $4 epoch, $5 highest offset settled out of order plus 1,
-- $6 incarnation, as the partition's start found it.
UPDATE hapax.checkpoints
SET owner = NULL, started_runs = 0, highest_settled = $5, updated_at = now()
WHERE group_id = $1 AND topic = $2 AND partition = $3 AND epoch = $4
  AND $6::uuid = (SELECT substr(encode(sha256(convert_to(concat(id, extract(epoch FROM
                  pg_postmaster_start_time())), 'UTF8')), 'hex'), 1, 32)::uuid
                  FROM hapax.incarnation)
