-- Retention's session, after session.sql, and whether no other daemon is at it:
-- two that finish one partition would wait for each other's snapshots. The lock
-- ends with the session. The lock_timeout holds for waiting for old snapshots
-- too; it must be shorter than that of make_partitions(), which waits for a
-- DETACH ... FINALIZE that waits.
SET lock_timeout = '3s';
SELECT pg_try_advisory_lock(7236835126382)
