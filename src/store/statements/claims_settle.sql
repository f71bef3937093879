-- Settles leases; see claims_settle.c.
SELECT paynotify.guard_settle($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
