-- A relay that leaves: another one may take over at once. $1 name, $2 holder, $3 epoch. No rows.
UPDATE hapax.leases SET until = clock_timestamp()
WHERE name = $1 AND holder = $2 AND epoch = $3
