-- What the deliverer's session relies on; see session.sql. Here nested loops
-- are what is wanted: a few events at a time are looked up by index, each in
-- the one partition that its received_at names; a hash or merge join would read
-- all partitions. lock_timeout: rows of deliveries are locked by statements as
-- short as these; whoever holds one longer hangs.
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
SET lock_timeout = '5s';
SET client_min_messages = warning;
SET standard_conforming_strings = on;
SET bytea_output = hex;
SET DateStyle = 'ISO, YMD';
SET TimeZone = 'UTC'
