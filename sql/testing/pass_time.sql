-- For the test kit: as if $1 seconds had passed since every failed run.
UPDATE hapax.attempts SET first_at = first_at - make_interval(secs => $1),
  last_at = last_at - make_interval(secs => $1), next_try = next_try - make_interval(secs => $1)
