-- The sessions of the guard's keys; see session.sql. A few keys at a time are
-- looked up by index. lock_timeout: an application's transaction may have a key
-- for as long as it likes; claims_attempt.c knows this one.
SET synchronous_commit = on;
SET default_transaction_isolation = 'read committed';
SET default_transaction_read_only = off;
SET default_transaction_deferrable = off;
SET search_path = pg_catalog, pg_temp;
SET jit = off;
SET plan_cache_mode = force_generic_plan;
SET enable_seqscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_bitmapscan = off;
SET max_parallel_workers_per_gather = 0;
SET statement_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET idle_session_timeout = 0;
SET lock_timeout = '300ms';
SET client_min_messages = warning;
SET standard_conforming_strings = on;
SET bytea_output = hex;
SET DateStyle = 'ISO, YMD';
SET TimeZone = 'UTC'
