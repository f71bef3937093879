-- A session that reads: never by mistake anything else.
SET default_transaction_read_only = on;
SET default_transaction_isolation = 'read committed';
SET search_path = pg_catalog, pg_temp;
SET jit = off;
SET plan_cache_mode = force_custom_plan;
SET client_min_messages = warning;
SET standard_conforming_strings = on;
SET DateStyle = 'ISO, YMD';
SET TimeZone = 'UTC'
