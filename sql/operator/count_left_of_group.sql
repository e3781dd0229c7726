-- What a group, or one topic of it, leaves that only its own workers carry out.
-- $1 group, $2 topic or NULL (all). One row.
SELECT (SELECT count(*) FROM hapax.outbox
        WHERE group_id = $1 AND ($2::text IS NULL OR source_topic = $2)) AS unsent,
       (SELECT count(*) FROM hapax.dead_letters
        WHERE group_id = $1 AND ($2::text IS NULL OR topic = $2) AND ended_at IS NULL) AS letters,
       (SELECT count(*) FROM hapax.idempotency_keys
        WHERE group_id = $1 AND ($2::text IS NULL OR topic = $2)
          AND status IN ('started', 'answered', 'unknown') AND expires_at = 'infinity') AS calls
