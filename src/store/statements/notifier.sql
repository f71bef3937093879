-- The notifier's session, after session.sql: nobody waits for its commits.
SET synchronous_commit = off
