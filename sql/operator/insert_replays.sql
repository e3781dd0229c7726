-- Orders a second run of each of these dead letters, once: if a replay is open, it adds none.
-- $1 ids, $2 who, $3 why, $4 edited, $5 payload if edited. A row for each that was added.
INSERT INTO hapax.replays (dead_letter, who, why, edited, payload)
SELECT id, $2, $3, $4::boolean, $5::bytea FROM unnest($1::bigint[]) AS id ORDER BY id
ON CONFLICT (dead_letter) WHERE ended_at IS NULL DO NOTHING
RETURNING id, dead_letter
