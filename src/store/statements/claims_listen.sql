-- The listener's session, after claims_session.sql: nobody waits for its
-- commits.
SET synchronous_commit = off;
LISTEN paynotify_guard
