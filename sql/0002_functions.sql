-- Work that a receiver may ask for but not do by itself: functions with the
-- rights of their owner and a pinned search_path.

-- Monthly partitions of the append-only tables, from last month to `until`
-- (last month: clocks differ). CREATE TABLE LIKE and ATTACH, since
-- CREATE TABLE ... PARTITION OF locks the parent against everything and so
-- stops all receiving behind any long reader; ATTACH does not. The CHECK saves
-- ATTACH the scan. Returns how many were made.
CREATE FUNCTION paynotify.make_partitions(until timestamptz) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC'
SET lock_timeout = '5s'
AS $$
DECLARE
	parent text;
	child text;
	lower_bound timestamptz;
	upper_bound timestamptz;
	made integer := 0;
BEGIN
	IF until > now() + interval '10 years' THEN
		RAISE EXCEPTION 'partitions are made at most 10 years ahead';
	END IF;
	-- One at a time: two hosts would attach the same month.
	PERFORM pg_advisory_xact_lock(7236835126381);
	FOREACH parent IN ARRAY ARRAY['event_log', 'receipts', 'evidence'] LOOP
		lower_bound := date_trunc('month', now()) - interval '1 month';
		WHILE lower_bound <= until LOOP
			upper_bound := lower_bound + interval '1 month';
			child := parent || to_char(lower_bound, '_YYYY_MM');
			IF to_regclass('paynotify.' || child) IS NULL THEN
				EXECUTE format('CREATE TABLE paynotify.%I '
					'(LIKE paynotify.%I INCLUDING ALL '
					'EXCLUDING IDENTITY, '
					'CONSTRAINT bounds CHECK '
					'(received_at >= %L AND '
					'received_at < %L)) '
					'WITH (toast_tuple_target = 8160)',
					child, parent, lower_bound, upper_bound);
				EXECUTE format('ALTER TABLE paynotify.%I '
					'ATTACH PARTITION paynotify.%I '
					'FOR VALUES FROM (%L) TO (%L)',
					parent, child, lower_bound, upper_bound);
				EXECUTE format('ALTER TABLE paynotify.%I '
					'DROP CONSTRAINT bounds', child);
				made := made + 1;
			END IF;
			lower_bound := upper_bound;
		END LOOP;
	END LOOP;
	RETURN made;
END
$$;

-- Moves expired webhook keys into the permanent tier, at most max_keys.
--
-- At every snapshot a key must be in at least one tier. A plain
-- DELETE ... RETURNING into the archive breaks that: an ingest statement whose
-- snapshot is older than this commit sees the key in neither tier and, the hot
-- row being dead by then, inserts it anew. So this function first takes a lock
-- that no ingest statement can hold together with it. An ingest statement that
-- waits for the lock takes its snapshot only afterwards (PostgreSQL locks the
-- tables of a prepared statement before the snapshot it runs with), and one
-- that runs already makes this function wait, shortly, or fail with 55P03.
--
-- While it holds or awaits the lock all receiving stands still. So what takes
-- long comes before: the keys are chosen without the lock (the index may be full
-- of dead entries that an old snapshot keeps), and behind a VACUUM, an ANALYZE
-- or another janitor, which may take minutes, it fails at once (55P03) on a lock
-- that conflicts with those but with no ingest.
CREATE FUNCTION paynotify.archive_expired_keys(max_keys integer)
RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '50ms'
SET enable_seqscan = off
AS $$
DECLARE
	chosen tid[];
	moved integer;
BEGIN
	-- The statement that moves must see what was committed before the lock.
	IF current_setting('transaction_isolation') <> 'read committed' THEN
		RAISE EXCEPTION 'keys are archived in READ COMMITTED only';
	END IF;
	chosen := ARRAY(
		SELECT ctid FROM paynotify.idempotency_keys
		WHERE expires_at <= now() AND state = 'COMPLETED'
			AND lease_token IS NULL
			AND starts_with(request_path, 'notify/')
		ORDER BY expires_at LIMIT max_keys);
	IF cardinality(chosen) = 0 THEN
		RETURN 0;
	END IF;
	LOCK TABLE paynotify.idempotency_keys
		IN SHARE UPDATE EXCLUSIVE MODE NOWAIT;
	LOCK TABLE paynotify.idempotency_keys IN SHARE ROW EXCLUSIVE MODE;
	WITH expired AS (
		-- All conditions again: a row may have changed meanwhile, or its
		-- place have another one, which is as good if they hold for it.
		-- The first is written so that the index does not offer itself.
		DELETE FROM paynotify.idempotency_keys
		WHERE ctid = ANY (chosen)
			AND expires_at - now() <= interval '0'
			AND state = 'COMPLETED' AND lease_token IS NULL
			AND starts_with(request_path, 'notify/')
		RETURNING tenant, request_path, key, request_hash, created_at
	)
	INSERT INTO paynotify.idempotency_archive
		(tenant, digest, request_hash, first_seen_at)
	SELECT tenant, sha256(convert_to(request_path || E'\n' || key, 'UTF8')),
		request_hash, created_at
	FROM expired
	ORDER BY 1, 2
	ON CONFLICT DO NOTHING;
	GET DIAGNOSTICS moved = ROW_COUNT;
	RETURN moved;
END
$$;

-- The ids that a key has, one for each tenant (or the one given) that it may
-- belong to: an event's id is the digest of tenant, route and key, so event_log
-- needs no index by key. Tenants are found by skipping through the primary keys
-- of the two tiers, one step a tenant.
CREATE FUNCTION paynotify.event_ids(event_key text, of_tenant text)
RETURNS uuid[]
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
WITH RECURSIVE hot AS (
	(SELECT tenant FROM paynotify.idempotency_keys
	ORDER BY tenant LIMIT 1)
	UNION ALL
	SELECT (SELECT k.tenant FROM paynotify.idempotency_keys k
		WHERE k.tenant > h.tenant ORDER BY k.tenant LIMIT 1)
	FROM hot h WHERE h.tenant IS NOT NULL
), archived AS (
	(SELECT tenant FROM paynotify.idempotency_archive
	ORDER BY tenant LIMIT 1)
	UNION ALL
	SELECT (SELECT k.tenant FROM paynotify.idempotency_archive k
		WHERE k.tenant > a.tenant ORDER BY k.tenant LIMIT 1)
	FROM archived a WHERE a.tenant IS NOT NULL
), tenants AS (
	SELECT tenant FROM hot WHERE of_tenant IS NULL
	UNION SELECT tenant FROM archived WHERE of_tenant IS NULL
	UNION SELECT of_tenant
)
SELECT array_agg(left(encode(sha256(convert_to(concat_ws(E'\n', tenant,
	'notify/' || split_part(event_key, ':', 2), event_key), 'UTF8')),
	'hex'), 32)::uuid)
FROM tenants
WHERE tenant IS NOT NULL
$$;

-- Group roles and what they may do. Roles belong to the whole cluster and need
-- rights that the owner of a database may lack: then a NOTICE says what a
-- superuser should run, and everything works without them. Called after every
-- migration; roles made later get their rights then.
CREATE FUNCTION paynotify.grant_roles() RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	role_name text;
	missing text[] := '{}';
BEGIN
	FOREACH role_name IN ARRAY ARRAY['paynotify_owner',
		'paynotify_receiver', 'paynotify_deliverer',
		'paynotify_consumer', 'paynotify_reader'] LOOP
		IF to_regrole(role_name) IS NULL THEN
			BEGIN
				EXECUTE format('CREATE ROLE %I NOLOGIN',
					role_name);
			EXCEPTION
			WHEN duplicate_object OR unique_violation THEN
				NULL; -- another database was quicker
			WHEN insufficient_privilege THEN
				missing := missing || role_name;
			END;
		END IF;
	END LOOP;
	IF missing <> '{}' THEN
		RAISE NOTICE 'group roles are missing: run as a superuser % '
			'and then "paynotifyctl db migrate" once more, which '
			'grants them their rights',
			(SELECT string_agg(format('CREATE ROLE %I NOLOGIN;', m),
				' ') FROM unnest(missing) m);
	END IF;

	IF to_regrole('paynotify_receiver') IS NOT NULL THEN
		GRANT USAGE ON SCHEMA paynotify TO paynotify_receiver;
		GRANT SELECT ON paynotify.migrations TO paynotify_receiver;
		GRANT INSERT ON paynotify.event_log, paynotify.evidence,
			paynotify.idempotency_keys, paynotify.receipts,
			paynotify.quarantine, paynotify.verifying_keys
			TO paynotify_receiver;
		-- What RETURNING and the look-ups read, and no more: no body, no
		-- event, no address of anybody.
		GRANT SELECT (tenant, request_path, key, request_hash)
			ON paynotify.idempotency_keys TO paynotify_receiver;
		GRANT SELECT (tenant, digest, request_hash)
			ON paynotify.idempotency_archive TO paynotify_receiver;
		GRANT SELECT (id, received_at)
			ON paynotify.receipts TO paynotify_receiver;
		GRANT SELECT (receipt_id)
			ON paynotify.quarantine TO paynotify_receiver;
		GRANT EXECUTE ON FUNCTION
			paynotify.archive_expired_keys(integer),
			paynotify.make_partitions(timestamptz)
			TO paynotify_receiver;
	END IF;
	IF to_regrole('paynotify_reader') IS NOT NULL THEN
		GRANT USAGE ON SCHEMA paynotify TO paynotify_reader;
		GRANT SELECT ON ALL TABLES IN SCHEMA paynotify
			TO paynotify_reader;
		GRANT EXECUTE ON FUNCTION paynotify.event_ids(text, text)
			TO paynotify_reader;
	END IF;
	IF to_regrole('paynotify_consumer') IS NOT NULL THEN
		GRANT USAGE ON SCHEMA paynotify TO paynotify_consumer;
		GRANT SELECT ON paynotify.events TO paynotify_consumer;
	END IF;
	IF to_regrole('paynotify_deliverer') IS NOT NULL THEN
		GRANT USAGE ON SCHEMA paynotify TO paynotify_deliverer;
		GRANT SELECT ON paynotify.migrations, paynotify.events
			TO paynotify_deliverer;
	END IF;
	IF to_regrole('paynotify_owner') IS NOT NULL THEN
		GRANT ALL ON SCHEMA paynotify TO paynotify_owner;
		GRANT ALL ON ALL TABLES IN SCHEMA paynotify
			TO paynotify_owner;
	END IF;
END
$$;

REVOKE ALL ON FUNCTION paynotify.make_partitions(timestamptz),
	paynotify.archive_expired_keys(integer),
	paynotify.event_ids(text, text), paynotify.grant_roles()
	FROM PUBLIC;
