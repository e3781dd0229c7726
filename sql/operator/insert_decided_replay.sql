-- Orders a run of a dead letter that carries out a decision about its call. A schema from 18 on.
-- $1 letter, $2 who, $3 why, $4 the replay that made the call or NULL, $5 key, $6 tenant, $7 token of the
-- call from now on. It runs what the call was made for. A row, or none if a replay is open.
INSERT INTO hapax.replays (dead_letter, who, why, edited, payload, key, tenant, token)
SELECT $1, $2, $3, coalesce(r.edited, false), r.payload, $5, $6, $7
FROM (SELECT) AS one LEFT JOIN hapax.replays r ON r.id = $4
ON CONFLICT (dead_letter) WHERE ended_at IS NULL DO NOTHING
RETURNING id, dead_letter
