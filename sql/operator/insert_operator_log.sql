-- What an operator did. $1 who, $2 action, $3 target, $4 why, $5 facts as JSON. No rows.
INSERT INTO hapax.operator_log (who, action, target, why, facts) VALUES ($1, $2, $3, $4, $5)
