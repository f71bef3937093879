-- The gateway's claims and settlements, many in a statement. The rules are those
-- of 0007. Elements should come in (tenant, route, key) order: locks are taken
-- as they come, and two statements that take them in one order do not deadlock.
-- How they are planned is set by the session that calls them (claims_session.sql
-- of the daemon), not here: seven settings a call are half of what a lone key
-- costs.

-- The row of such a key is written twice, and grows by the answer. With room on
-- its page the second version goes beside the first, and no index is touched
-- again (HOT): so it is for most while answers are short. Keys of webhooks are
-- written once, and take 250 bytes more.
ALTER TABLE paynotify.idempotency_keys SET (fillfactor = 50);

-- Claims keys, one an element, each as guard_claim() does. place counts from 1.
-- What is new goes in with one statement, what is settled is only read, and only
-- the rest costs a call each.
-- Outcome "later": claim it again. Behind bodies of 8 MB in sum there are no more,
-- or all of a batch would wait for them.
CREATE FUNCTION paynotify.guard_claim_many(tenants text[], routes text[],
	keys text[], request_hashes bytea[], tokens uuid[], leases interval[],
	ttls interval[], unknowns text[], after_expiries text[],
	attempts_max integer[])
RETURNS TABLE (place bigint, outcome text, attempt integer,
	response_status smallint, response_headers text, response_body bytea,
	expires_at timestamptz, retry_at timestamptz, reason text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	instant timestamptz := clock_timestamp();
	waited interval;
	inserted bigint := 0;
	-- Looked for once in all: for each it would be a sixth of what a key
	-- costs. Who has some goes the long way, and is told why it is refused.
	printable boolean := (array_to_string(tenants, ' ') ||
		array_to_string(routes, ' ')) !~ '[[:cntrl:]]';
BEGIN
	IF current_setting('transaction_isolation') <> 'read committed' THEN
		RAISE EXCEPTION 'keys are claimed in READ COMMITTED only'
		USING ERRCODE = '25001';
	END IF;
	-- As in guard_claim_one: the archive is read behind the lock.
	LOCK TABLE paynotify.idempotency_keys IN ROW EXCLUSIVE MODE;
	INSERT INTO paynotify.idempotency_keys (tenant, request_path,
		key, request_hash, state, locked_at, lease_token,
		lease_expires_at, created_at, expires_at, attempts,
		crashes)
	SELECT u.tenant, u.route, u.key, u.request_hash, 'PROCESSING',
		instant, u.token, instant + u.lease, instant,
		instant + u.ttl, 1, 0
	FROM unnest(tenants, routes, keys, request_hashes, tokens,
		leases, ttls, unknowns, after_expiries, attempts_max)
		u (tenant, route, key, request_hash, token, lease, ttl,
			unknown, after_expiry, attempts_max)
	LEFT JOIN paynotify.idempotency_keys i
		ON i.tenant = u.tenant AND i.request_path = u.route
			AND i.key = u.key
	LEFT JOIN paynotify.idempotency_archive a
		ON a.tenant = u.tenant AND a.digest = sha256(convert_to(
			u.route || E'\n' || u.key, 'UTF8'))
	WHERE i.tenant IS NULL AND a.tenant IS NULL
		-- guard_is_scope().
		AND printable AND octet_length(u.tenant) BETWEEN 1 AND 128
		AND length(u.route) BETWEEN 1 AND 255
		AND length(u.key) BETWEEN 1 AND 255
		AND NOT starts_with(u.route, 'notify/')
		AND paynotify.guard_is_claim(u.request_hash, u.lease,
			u.ttl, u.unknown, u.after_expiry,
			u.attempts_max, u.token)
	ON CONFLICT (tenant, request_path, key) DO NOTHING;
	GET DIAGNOSTICS inserted = ROW_COUNT;
	waited := clock_timestamp() - instant;
	IF inserted = cardinality(keys) AND waited <= interval '10 ms' THEN
		-- All were new, as most are: nothing need be looked up, and a
		-- query would be a quarter of what a lone key costs.
		outcome := 'run';
		attempt := 1;
		FOR n IN 1..inserted LOOP
			place := n;
			expires_at := instant + ttls[n];
			retry_at := instant + leases[n];
			RETURN NEXT;
		END LOOP;
		RETURN;
	END IF;
	-- The times count from when others were no longer waited for.
	IF inserted > 0 AND waited > interval '10 ms' THEN
		UPDATE paynotify.idempotency_keys i
		SET locked_at = i.locked_at + waited,
			lease_expires_at = i.lease_expires_at + waited,
			expires_at = i.expires_at + waited
		FROM unnest(tenants, routes, keys, tokens)
			u (tenant, route, key, token)
		WHERE i.tenant = u.tenant AND i.request_path = u.route
			AND i.key = u.key AND i.lease_token = u.token
			AND i.state = 'PROCESSING'
			AND i.locked_at = instant;
	END IF;
	-- The calls are made in order: OFFSET keeps them to one a row. What was
	-- put in above is found here by its token; only then, since whoever
	-- finds what it put in before has to wait for its commit.
	RETURN QUERY
	SELECT r.place, CASE WHEN r.later THEN 'later' ELSE r.outcome END,
		r.attempt, r.response_status, r.response_headers,
		CASE WHEN r.later THEN NULL ELSE r.response_body END,
		r.expires_at, r.retry_at, r.reason
	FROM (SELECT c.place, coalesce(c.outcome, (c.got).outcome) AS outcome,
		CASE WHEN c.outcome IS NULL THEN (c.got).attempt
			ELSE c.attempts END AS attempt,
		CASE WHEN c.outcome IS NULL THEN (c.got).response_status
			ELSE c.response_status END AS response_status,
		CASE WHEN c.outcome IS NULL THEN (c.got).response_headers
			ELSE c.response_headers END AS response_headers,
		CASE WHEN c.outcome IS NULL THEN (c.got).response_body
			ELSE c.response_body END AS response_body,
		CASE WHEN c.outcome IS NULL THEN (c.got).expires_at
			ELSE c.expires_at END AS expires_at,
		CASE WHEN c.outcome IS NULL THEN (c.got).retry_at
			ELSE c.lease_expires_at END AS retry_at,
		CASE WHEN c.outcome IS NULL THEN (c.got).reason
			ELSE c.reason END AS reason,
		-- A length is read without its body. No order: it is that of
		-- the calls, and a sort would cost.
		sum(octet_length(CASE WHEN c.outcome IS NULL
				THEN (c.got).response_body
				ELSE c.response_body END))
			OVER (ROWS UNBOUNDED PRECEDING)
			- octet_length(CASE WHEN c.outcome IS NULL
				THEN (c.got).response_body
				ELSE c.response_body END) > 8388608 AS later
	FROM (SELECT l.*, CASE WHEN l.outcome IS NULL THEN
			paynotify.guard_claim_one(l.tenant, l.route, l.key,
				l.request_hash, l.lease, l.ttl, l.unknown,
				l.after_expiry, l.attempts_max, l.token)
			END AS got
		FROM (SELECT u.*, CASE
				WHEN i.request_hash <> u.request_hash THEN NULL
				WHEN i.state = 'COMPLETED'
					AND i.expires_at > instant THEN 'replay'
				WHEN inserted > 0 AND i.state = 'PROCESSING'
					AND i.lease_token = u.token
					AND i.lease_expires_at > instant
					THEN 'run'
				END AS outcome, i.attempts, i.response_status,
				i.response_headers, i.response_body,
				i.expires_at, i.lease_expires_at,
				NULL::text AS reason
			FROM unnest(tenants, routes, keys, request_hashes,
				tokens, leases, ttls, unknowns, after_expiries,
				attempts_max) WITH ORDINALITY
				u (tenant, route, key, request_hash, token,
					lease, ttl, unknown, after_expiry,
					attempts_max, place)
			LEFT JOIN paynotify.idempotency_keys i
				ON i.tenant = u.tenant
					AND i.request_path = u.route
					AND i.key = u.key
			OFFSET 0) l
		OFFSET 0) c) r;
END
$$;

-- The rest of guard_settle, of which it returns what that does: all that is not
-- completed by it, at that instant.
CREATE FUNCTION paynotify.guard_settle_rest(tenants text[], routes text[],
	keys text[], tokens uuid[], acts text[], statuses integer[],
	reasons text[], leases interval[], sent_again boolean[],
	instant timestamptz) RETURNS SETOF bigint
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
	done bigint[];
	more bigint[];
BEGIN
	IF EXISTS (SELECT FROM unnest(acts, statuses, leases)
			u (act, status, lease)
		WHERE CASE u.act WHEN 'complete'
				THEN u.status BETWEEN 200 AND 599
			WHEN 'renew' THEN paynotify.guard_is_lease(u.lease)
			ELSE u.act IN ('free', 'again', 'aside', 'doubt') END
			IS NOT TRUE) THEN
		RAISE EXCEPTION 'an act is complete with an HTTP status of 200 '
			'to 599, free, again, aside, doubt, or renew with a '
			'lease greater than 0 and at most 1 hour'
		USING ERRCODE = '22023';
	END IF;
	-- Of a key that is there twice one was.
	done := ARRAY(
		SELECT DISTINCT ON (u.tenant, u.route, u.key) u.place
		FROM unnest(tenants, routes, keys, tokens, acts)
			WITH ORDINALITY
			u (tenant, route, key, token, act, place)
		JOIN paynotify.idempotency_keys i
			ON i.tenant = u.tenant AND i.request_path = u.route
				AND i.key = u.key
		WHERE u.act = 'complete' AND i.state = 'COMPLETED'
			AND i.settled_by = u.token AND i.completed_at = instant
		ORDER BY u.tenant, u.route, u.key, u.place);
	IF 'free' = ANY (acts) THEN
		WITH gone AS (
			DELETE FROM paynotify.idempotency_keys i
			USING unnest(tenants, routes, keys, tokens, acts)
				WITH ORDINALITY
				u (tenant, route, key, token, act, place)
			WHERE u.act = 'free' AND i.tenant = u.tenant
				AND i.request_path = u.route AND i.key = u.key
				AND i.state = 'PROCESSING'
				AND i.lease_token = u.token
				AND i.lease_expires_at > clock_timestamp()
				AND i.attempts = 1
			RETURNING u.place
		)
		SELECT array_agg(g.place) INTO more FROM gone g;
		done := done || more;
	END IF;
	-- What is free is as guard_release() says.
	WITH changed AS (
		UPDATE paynotify.idempotency_keys i
		SET state = CASE WHEN u.act = 'aside' THEN 'FAILED'
				WHEN u.act = 'free'
					AND i.created_at = i.locked_at
				THEN 'COMPLETED'
				ELSE 'PROCESSING' END::paynotify.key_state,
			expires_at = CASE WHEN u.act = 'free'
					AND i.created_at = i.locked_at
				THEN i.created_at - interval '1 day'
				ELSE i.expires_at END,
			lease_token = CASE WHEN u.act IN ('renew', 'doubt')
				THEN u.token END,
			lease_expires_at = CASE u.act WHEN 'renew'
				THEN clock_timestamp() + u.lease
				WHEN 'doubt' THEN i.lease_expires_at END,
			settled_by = CASE u.act WHEN 'renew' THEN i.settled_by
				ELSE u.token END,
			reason = CASE u.act WHEN 'renew' THEN i.reason
				ELSE coalesce(u.reason, CASE u.act
					WHEN 'free' THEN 'released'
					WHEN 'again' THEN 'retry'
					WHEN 'doubt' THEN 'not known'
					ELSE 'hold' END) END
		FROM unnest(tenants, routes, keys, tokens, acts, reasons,
			leases) WITH ORDINALITY
			u (tenant, route, key, token, act, reason, lease, place)
		WHERE u.act <> 'complete' AND i.tenant = u.tenant
			AND i.request_path = u.route AND i.key = u.key
			AND i.state = 'PROCESSING' AND i.lease_token = u.token
			AND i.lease_expires_at > clock_timestamp()
		RETURNING u.place
	)
	SELECT array_agg(c.place) INTO more FROM changed c;
	done := done || more;
	-- Of what was sent before: it went through then. What is free has left
	-- no trace, and nobody has it.
	IF cardinality(done) < cardinality(tokens)
		AND true = ANY (sent_again) THEN
		SELECT array_agg(u.place) INTO more
		FROM unnest(tenants, routes, keys, tokens, acts, sent_again)
			WITH ORDINALITY
			u (tenant, route, key, token, act, sent_again, place)
		LEFT JOIN paynotify.idempotency_keys i
			ON i.tenant = u.tenant AND i.request_path = u.route
				AND i.key = u.key
		WHERE u.sent_again AND u.place <> ALL (done)
			AND (i.settled_by = u.token AND u.act <> 'renew'
				OR u.act = 'free');
		done := done || more;
		PERFORM paynotify.guard_await();
	END IF;
	RETURN QUERY
	SELECT u.place FROM unnest(tokens) WITH ORDINALITY u (token, place)
	WHERE u.place <> ALL (done);
END
$$;

-- Settles leases. act: "complete" (this is the answer); "free", "again", "aside"
-- (released, retry, hold of guard_release()); "doubt" (whether the work was done
-- is not known: nobody is at work any more, and the lease runs out); "renew" (for
-- so much longer from now). sent_again: it may have been committed already.
-- Returns the places, from 1, of those whose lease was lost: nothing was done
-- about them. Most often all are "complete" and held, which costs one UPDATE.
CREATE FUNCTION paynotify.guard_settle(tenants text[], routes text[],
	keys text[], tokens uuid[], acts text[], statuses integer[],
	headers text[], bodies bytea[], reasons text[], leases interval[],
	sent_again boolean[]) RETURNS SETOF bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	instant timestamptz := clock_timestamp();
	completed bigint;
BEGIN
	UPDATE paynotify.idempotency_keys i
	SET state = 'COMPLETED', completed_at = instant, lease_token = NULL,
		lease_expires_at = NULL, settled_by = u.token, reason = NULL,
		-- As guard_complete(). What stays as it was touches no index.
		expires_at = CASE WHEN i.expires_at > instant THEN i.expires_at
			ELSE instant + (i.expires_at - i.created_at) END,
		response_status = u.status, response_headers = u.headers,
		response_body = u.body
	FROM unnest(tenants, routes, keys, tokens, acts, statuses, headers,
		bodies) u (tenant, route, key, token, act, status, headers,
			body)
	WHERE u.act = 'complete' AND u.status BETWEEN 200 AND 599
		AND i.tenant = u.tenant AND i.request_path = u.route
		AND i.key = u.key AND i.state = 'PROCESSING'
		AND i.lease_token = u.token
		AND i.lease_expires_at > clock_timestamp();
	GET DIAGNOSTICS completed = ROW_COUNT;
	IF completed < cardinality(tokens) THEN
		RETURN QUERY
		SELECT paynotify.guard_settle_rest(tenants, routes, keys,
			tokens, acts, statuses, reasons, leases, sent_again,
			instant);
	END IF;
END
$$;

-- The list of who may do what goes on here.
ALTER FUNCTION paynotify.role_rights() RENAME TO role_rights_0007;
CREATE FUNCTION paynotify.role_rights(OUT grantee text, OUT what text)
RETURNS SETOF record
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
SELECT * FROM paynotify.role_rights_0007()
UNION ALL
VALUES ('receiver', 'EXECUTE ON FUNCTION
	paynotify.guard_claim_many(text[], text[], text[], bytea[], uuid[],
		interval[], interval[], text[], text[], integer[]),
	paynotify.guard_settle(text[], text[], text[], uuid[], text[],
		integer[], text[], bytea[], text[], interval[], boolean[])')
$$;

-- Nothing is for everybody.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA paynotify FROM PUBLIC;
