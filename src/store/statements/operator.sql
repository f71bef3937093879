-- A session of an operator: it writes, otherwise as reader.sql. An operator who
-- is stopped by a lock wants to know it, not to wait.
SET synchronous_commit = on;
SET default_transaction_read_only = off;
SET default_transaction_isolation = 'read committed';
SET search_path = pg_catalog, pg_temp;
SET jit = off;
SET plan_cache_mode = force_custom_plan;
SET lock_timeout = '5s';
SET client_min_messages = warning;
SET standard_conforming_strings = on;
SET DateStyle = 'ISO, YMD';
SET TimeZone = 'UTC'
