-- The idempotency guard: a merchant's own requests (POST /v1/charges) under an
-- Idempotency-Key, on the table of the webhook keys; request_path is the route.
-- An application on this database calls these functions inside its own
-- transaction, so that its work and the answer commit together or not at all.
--
--   (no row) --claim--> PROCESSING --complete--> COMPLETED --ttl--> archive
--      ^                 |  ^   |
--      +---release-------+  |   +--hold, or: crashed too often,--> FAILED
--        (first attempt)    |      or unknown = hold                 |
--                           +-------operator: guard_set_free---------+
--
-- In PROCESSING one of three holds:
-- * lease_token is set and the lease has not ended: a holder is at work.
-- * lease_token is set and the lease has ended: the holder crashed or is slow.
--   Whether its work was done is not known: `unknown` of the next claim decides.
-- * lease_token is NULL: let go, by its holder or an operator. The next runs.
-- What completes, renews or releases must have the token and must not be late.
-- attempts only grows, in a next life after the ttl too (the archive keeps it):
-- it is the fencing token for what the work calls. crashes counts the holders
-- of this life that did not come back.
--
-- A claim in a transaction that is open makes the next one of its key wait for
-- its end (lock_timeout is the caller's), and then sees what became of it. It
-- also puts the janitor off, which moves no key beside it: see 0002.

-- NULL for webhook keys, so that their rows are not a byte longer. settled_by:
-- the token under which the gateway settled the key last (0008).
ALTER TABLE paynotify.idempotency_keys
	ADD COLUMN attempts integer,
	ADD COLUMN crashes integer,
	ADD COLUMN reason text COLLATE "C",
	ADD COLUMN settled_by uuid;
ALTER TABLE paynotify.idempotency_archive ADD COLUMN attempts integer;

-- For keys list and show. No index of its own: each would cost every webhook,
-- and the primary key finds a tenant's routes.
CREATE VIEW paynotify.guard_keys AS
SELECT tenant, request_path AS route, key, state, attempts, crashes,
	created_at, locked_at, lease_token IS NOT NULL AS held,
	lease_expires_at, completed_at, expires_at, response_status, reason
FROM paynotify.idempotency_keys
WHERE NOT starts_with(request_path, 'notify/');

-- What operators did, and why.
CREATE TABLE paynotify.guard_actions (
	at timestamptz NOT NULL DEFAULT clock_timestamp(),
	tenant text COLLATE "C" NOT NULL,
	route text COLLATE "C" NOT NULL,
	key text COLLATE "C" NOT NULL,
	action text COLLATE "C" NOT NULL,
	actor text COLLATE "C" NOT NULL,
	reason text COLLATE "C" NOT NULL
);

-- Whether these can be a key of the guard. Never one of a webhook: who could
-- claim or forget those could have an event recorded twice or not at all. A
-- line feed ends the route in the digest of the archive. Lengths: an entry of
-- the primary key holds 2,700 bytes.
CREATE FUNCTION paynotify.guard_is_scope(tenant text, route text, key text)
RETURNS boolean
LANGUAGE sql IMMUTABLE
AS $$
SELECT octet_length(tenant) BETWEEN 1 AND 128 AND tenant !~ '[[:cntrl:]]'
	AND length(route) BETWEEN 1 AND 255 AND route !~ '[[:cntrl:]]'
	AND NOT starts_with(route, 'notify/')
	AND length(key) BETWEEN 1 AND 255
$$;

CREATE FUNCTION paynotify.guard_check(tenant text, route text, key text)
RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
	IF paynotify.guard_is_scope(tenant, route, key) THEN
		RETURN;
	END IF;
	IF (octet_length(tenant) BETWEEN 1 AND 128
		AND tenant !~ '[[:cntrl:]]') IS NOT TRUE THEN
		RAISE EXCEPTION 'a tenant has 1 to 128 bytes and no control '
			'characters' USING ERRCODE = '22023';
	END IF;
	IF (length(key) BETWEEN 1 AND 255) IS NOT TRUE THEN
		RAISE EXCEPTION 'an idempotency key has 1 to 255 characters'
		USING ERRCODE = '22023';
	END IF;
	RAISE EXCEPTION 'a route is a method and a path of at most 255 '
		'characters, as in "POST /v1/charges"' USING ERRCODE = '22023';
END
$$;

-- Whether a lease may be so long. Ends are as in the daemon's configuration: a
-- time that no calendar has would be everybody's who lists keys.
CREATE FUNCTION paynotify.guard_is_lease(lease interval) RETURNS boolean
LANGUAGE sql IMMUTABLE
AS $$
SELECT lease > interval '0' AND lease <= interval '1 hour'
$$;

-- Whether an answer can be replayed: a final status (1xx is none), and no more
-- than the daemon reads and sends. NULL headers and body are fine.
CREATE FUNCTION paynotify.guard_is_answer(status integer, headers text,
	body bytea) RETURNS boolean
LANGUAGE sql IMMUTABLE
AS $$
SELECT status BETWEEN 200 AND 599
	AND coalesce(octet_length(headers), 0) <= 16384
	AND coalesce(octet_length(body), 0) <= 8388608
$$;

-- Whether a claim asks for what there is.
CREATE FUNCTION paynotify.guard_is_claim(request_hash bytea, lease interval,
	ttl interval, unknown text, after_expiry text, attempts_max integer,
	claim_token uuid) RETURNS boolean
LANGUAGE sql IMMUTABLE
AS $$
SELECT octet_length(request_hash) = 32 AND paynotify.guard_is_lease(lease)
	AND ttl > interval '0' AND ttl <= interval '400 days'
	AND unknown IN ('retry', 'hold')
	AND after_expiry IN ('new', 'refuse') AND attempts_max >= 1
	AND claim_token IS NOT NULL
$$;

-- What a claim finds: run (the key is yours under `token`, this is attempt n),
-- replay (with what was answered), mismatch (the key was used for another
-- request), busy (somebody has it until retry_at; with a reason if that one came
-- to no answer and is not at work any more), failed (set aside for the operator;
-- reason), expired (it was used and its time is over).
CREATE TYPE paynotify.guard_claimed AS (
	outcome text,
	attempt integer,
	token uuid,
	response_status smallint,
	response_headers text,
	response_body bytea,
	created_at timestamptz,
	expires_at timestamptz,
	retry_at timestamptz,
	reason text
);

-- What was found is only told once it is where commits have to be: what wrote
-- it may have been cut off before that, and who writes nothing does not wait.
CREATE FUNCTION paynotify.guard_await() RETURNS pg_lsn
LANGUAGE sql
AS $$
SELECT pg_logical_emit_message(true, 'paynotify', '')
$$;

-- Claims a key, for guard_claim and guard_claim_many. Needs the settings of the
-- former, or of the session of those who call the latter.
CREATE FUNCTION paynotify.guard_claim_one(tenant text, route text, key text,
	request_hash bytea, lease interval, ttl interval, unknown text,
	after_expiry text, attempts_max integer, claim_token uuid)
RETURNS paynotify.guard_claimed
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
<<f>>
DECLARE
	instant timestamptz := clock_timestamp();
	waited interval;
	k paynotify.idempotency_keys;
	archived paynotify.idempotency_archive;
	got paynotify.guard_claimed;
BEGIN
	-- An older snapshot would see a key that moved in neither tier.
	IF current_setting('transaction_isolation') <> 'read committed' THEN
		RAISE EXCEPTION 'keys are claimed in READ COMMITTED only'
		USING ERRCODE = '25001', HINT = 'BEGIN ISOLATION LEVEL READ '
			'COMMITTED, or claim in a transaction of its own';
	END IF;
	PERFORM paynotify.guard_check(tenant, route, guard_claim_one.key);
	IF paynotify.guard_is_claim(guard_claim_one.request_hash, lease, ttl,
		unknown, after_expiry, attempts_max, claim_token) IS NOT TRUE
	THEN
		RAISE EXCEPTION 'request_hash must have 32 bytes, lease, ttl '
			'and attempts_max be greater than 0, lease at most 1 '
			'hour, ttl at most 400 days, unknown "retry" or '
			'"hold", after_expiry "new" or "refuse", claim_token '
			'not NULL' USING ERRCODE = '22023';
	END IF;
	FOR look IN 1..2 LOOP
		-- First without any lock: what is settled is only read, so that
		-- a repeat does not hold up its holder, nor the next repeat.
		SELECT * INTO k FROM paynotify.idempotency_keys i
		WHERE i.tenant = guard_claim_one.tenant AND i.request_path = route
			AND i.key = guard_claim_one.key;
		got.outcome := CASE
			WHEN k.state = 'COMPLETED' AND k.expires_at <= instant
				AND after_expiry = 'new' THEN NULL
			WHEN k.request_hash <> guard_claim_one.request_hash
				THEN 'mismatch'
			WHEN k.state = 'COMPLETED' AND k.expires_at <= instant
				THEN 'expired'
			WHEN k.state = 'COMPLETED' THEN 'replay'
			WHEN k.state = 'FAILED' THEN 'failed'
			WHEN k.lease_expires_at <= instant THEN NULL
			WHEN k.lease_token = claim_token THEN 'run'
			WHEN k.lease_token IS NOT NULL THEN 'busy'
			END;
		IF got.outcome = 'mismatch' THEN
			RETURN got; -- nothing of another request
		ELSIF got.outcome IS NOT NULL THEN
			IF got.outcome = 'run' THEN
				got.token := k.lease_token;
				PERFORM paynotify.guard_await();
			END IF;
			got.attempt := k.attempts;
			got.response_status := k.response_status;
			got.response_headers := k.response_headers;
			got.response_body := k.response_body;
			got.created_at := k.created_at;
			got.expires_at := k.expires_at;
			got.retry_at := k.lease_expires_at;
			got.reason := k.reason;
			RETURN got;
		END IF;
		-- From here on no key moves. The archive is read behind the
		-- lock: before it, a key could move in between.
		LOCK TABLE paynotify.idempotency_keys IN ROW EXCLUSIVE MODE;
		SELECT * INTO archived FROM paynotify.idempotency_archive a
		WHERE a.tenant = guard_claim_one.tenant AND a.digest = sha256(
			convert_to(route || E'\n' || guard_claim_one.key, 'UTF8'));
		IF FOUND AND after_expiry = 'refuse' THEN
			got.outcome := CASE archived.request_hash
				WHEN guard_claim_one.request_hash THEN 'expired'
				ELSE 'mismatch' END;
			RETURN got;
		END IF;
		INSERT INTO paynotify.idempotency_keys AS i (tenant,
			request_path, key, request_hash, state, locked_at,
			lease_token, lease_expires_at, created_at, expires_at,
			attempts, crashes)
		VALUES (guard_claim_one.tenant, route, guard_claim_one.key,
			guard_claim_one.request_hash, 'PROCESSING', instant,
			claim_token, instant + lease, instant, instant + ttl,
			coalesce(archived.attempts, 0) + 1, 0)
		ON CONFLICT (tenant, request_path, key) DO UPDATE
		SET request_hash = excluded.request_hash, state = 'PROCESSING',
			locked_at = excluded.locked_at,
			lease_token = excluded.lease_token,
			lease_expires_at = excluded.lease_expires_at,
			expires_at = excluded.expires_at,
			response_status = NULL, response_headers = NULL,
			response_body = NULL, completed_at = NULL, reason = NULL,
			created_at = CASE i.state WHEN 'COMPLETED'
				THEN excluded.created_at ELSE i.created_at END,
			attempts = i.attempts + 1,
			crashes = CASE WHEN i.state = 'COMPLETED' THEN 0
				WHEN i.lease_token IS NULL THEN i.crashes
				ELSE i.crashes + 1 END
		WHERE (i.state = 'PROCESSING'
				AND i.request_hash = excluded.request_hash
				AND (i.expires_at > instant
					OR after_expiry = 'new')
				AND (i.lease_token IS NULL
					OR i.lease_expires_at <= instant
					AND unknown = 'retry'
					AND i.crashes + 1 < attempts_max))
			OR (i.state = 'COMPLETED' AND i.expires_at <= instant
				AND after_expiry = 'new')
		RETURNING * INTO k;
		EXIT WHEN FOUND;
		-- Not to be taken over, and locked by now: it says why not, at
		-- the second look. A lease that ended is set aside; so is what
		-- was let go and came to no answer in its time, where nothing
		-- may run past it. Who said why the work came to no answer
		-- knew more than that no answer came.
		UPDATE paynotify.idempotency_keys i
		SET state = 'FAILED', lease_token = NULL,
			lease_expires_at = NULL, crashes = i.crashes
				+ (i.lease_token IS NOT NULL)::integer,
			reason = CASE
				WHEN i.expires_at <= instant
					AND after_expiry = 'refuse'
				THEN concat_ws('; ', i.reason, 'its time was '
				'over before it had an answer: whether the '
				'work was done is not known')
				WHEN i.reason IS NOT NULL THEN i.reason
				WHEN unknown = 'hold'
				THEN 'its holder did not come back: whether '
				'the work was done is not known' ELSE format(
				'%s holders in a row did not come back',
				i.crashes + 1) END
		WHERE i.tenant = guard_claim_one.tenant AND i.request_path = route
			AND i.key = guard_claim_one.key AND i.state = 'PROCESSING'
			AND i.request_hash = guard_claim_one.request_hash
			AND (i.lease_expires_at <= instant
				OR i.lease_token IS NULL
				AND i.expires_at <= instant
				AND after_expiry = 'refuse');
	END LOOP;
	-- The times count from when another one's end was no longer waited for.
	waited := clock_timestamp() - instant;
	IF waited > interval '10 ms' THEN
		UPDATE paynotify.idempotency_keys i
		SET created_at = CASE i.locked_at WHEN i.created_at
				THEN i.created_at + waited ELSE i.created_at END,
			locked_at = i.locked_at + waited,
			lease_expires_at = i.lease_expires_at + waited,
			expires_at = i.expires_at + waited
		WHERE i.tenant = guard_claim_one.tenant AND i.request_path = route
			AND i.key = guard_claim_one.key
		RETURNING * INTO k;
	END IF;
	got.outcome := 'run';
	got.attempt := k.attempts;
	got.token := k.lease_token;
	got.created_at := k.created_at;
	got.expires_at := k.expires_at;
	got.retry_at := k.lease_expires_at;
	RETURN got;
END
$$;

-- Claims a key. request_hash: the SHA-256 of the request. lease: how long the
-- work may take. ttl: how long the answer is kept, from now. unknown, for a
-- holder that did not come back: "retry" (the next one runs; set aside when
-- attempts_max of them did not) or "hold" (set aside). after_expiry: "new" or
-- "refuse" (what came to no answer until then is set aside). claim_token: a random one that the lease gets. Who does not know
-- whether its claim was committed claims again under the same, and has its key.
CREATE FUNCTION paynotify.guard_claim(tenant text, route text, key text,
	request_hash bytea, lease interval DEFAULT '1 minute',
	ttl interval DEFAULT '24 hours', unknown text DEFAULT 'retry',
	after_expiry text DEFAULT 'new', attempts_max integer DEFAULT 10,
	claim_token uuid DEFAULT gen_random_uuid())
RETURNS paynotify.guard_claimed
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
BEGIN
	RETURN paynotify.guard_claim_one(tenant, route, key, request_hash,
		lease, ttl, unknown, after_expiry, attempts_max, claim_token);
END
$$;

-- Raises that a lease was lost, unless it is held: what depends on it must not
-- be committed.
CREATE FUNCTION paynotify.guard_must(held boolean, route text, key text)
RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
	IF held IS NOT TRUE THEN
		RAISE EXCEPTION 'the lease of key "%" of "%" was lost', key,
			route
		USING ERRCODE = 'PN001', DETAIL = 'It had ended, was settled '
			'before, or another attempt has the key now.',
			HINT = 'Roll back. Claim with a longer lease, or renew '
			'it, if the work takes longer.';
	END IF;
END
$$;

-- The work is done and this is the answer: from now on it is replayed. A life that
-- is over by then begins anew, or who has waited for the answer would not find it,
-- and do the work once more. PN001: the lease was lost.
CREATE FUNCTION paynotify.guard_complete(tenant text, route text, key text,
	token uuid, response_status integer, response_headers text DEFAULT NULL,
	response_body bytea DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
#variable_conflict use_column
BEGIN
	IF (guard_complete.response_status BETWEEN 200 AND 599) IS NOT TRUE
	THEN
		RAISE EXCEPTION 'response_status must be the HTTP status of an '
			'answer, 200 to 599, not %',
			guard_complete.response_status USING ERRCODE = '22023';
	ELSIF NOT paynotify.guard_is_answer(guard_complete.response_status,
		guard_complete.response_headers, guard_complete.response_body)
	THEN
		RAISE EXCEPTION 'response_headers has at most 16 kB, '
			'response_body at most 8 MB' USING ERRCODE = '22023';
	END IF;
	UPDATE paynotify.idempotency_keys i
	SET state = 'COMPLETED', completed_at = clock_timestamp(),
		lease_token = NULL, lease_expires_at = NULL, reason = NULL,
		expires_at = CASE WHEN i.expires_at > clock_timestamp()
			THEN i.expires_at ELSE clock_timestamp()
				+ (i.expires_at - i.created_at) END,
		response_status = guard_complete.response_status,
		response_headers = guard_complete.response_headers,
		response_body = guard_complete.response_body
	WHERE i.tenant = guard_complete.tenant AND i.request_path = route
		AND i.key = guard_complete.key AND i.state = 'PROCESSING'
		AND i.lease_token = token
		AND i.lease_expires_at > clock_timestamp();
	PERFORM paynotify.guard_must(FOUND, route, guard_complete.key);
END
$$;

-- The work goes on: the lease ends so much later than now. PN001: it was lost.
CREATE FUNCTION paynotify.guard_renew(tenant text, route text, key text,
	token uuid, lease interval) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
#variable_conflict use_column
BEGIN
	IF paynotify.guard_is_lease(lease) IS NOT TRUE THEN
		RAISE EXCEPTION 'lease must be greater than 0 and at most 1 '
			'hour' USING ERRCODE = '22023';
	END IF;
	UPDATE paynotify.idempotency_keys i
	SET lease_expires_at = clock_timestamp() + lease
	WHERE i.tenant = guard_renew.tenant AND i.request_path = route
		AND i.key = guard_renew.key AND i.state = 'PROCESSING'
		AND i.lease_token = token
		AND i.lease_expires_at > clock_timestamp();
	PERFORM paynotify.guard_must(FOUND, route, guard_renew.key);
END
$$;

-- There is no answer to keep. outcome: "released", nothing was done (at the first
-- attempt of a life it is as if that had never begun); "retry", that is not known,
-- and the next one runs at once; "hold", it is not known, and an operator decides.
-- (Not known, and the next one runs when the lease ends: say nothing.) PN001: the
-- lease was lost.
CREATE FUNCTION paynotify.guard_release(tenant text, route text, key text,
	token uuid, outcome text DEFAULT 'released', reason text DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
#variable_conflict use_column
BEGIN
	IF (outcome IN ('released', 'retry', 'hold')) IS NOT TRUE THEN
		RAISE EXCEPTION 'outcome must be "released", "retry" or "hold", '
			'not "%"', outcome USING ERRCODE = '22023';
	END IF;
	IF outcome = 'released' THEN
		DELETE FROM paynotify.idempotency_keys i
		WHERE i.tenant = guard_release.tenant AND i.request_path = route
			AND i.key = guard_release.key AND i.state = 'PROCESSING'
			AND i.lease_token = token
			AND i.lease_expires_at > clock_timestamp()
			AND i.attempts = 1;
		IF FOUND THEN
			RETURN;
		END IF;
	END IF;
	-- What a next life is let go from at its first attempt, which began when
	-- the life did, is over, as the one before was: only attempts is kept.
	-- (Over for those too who looked at their clock before they waited.)
	UPDATE paynotify.idempotency_keys i
	SET state = CASE WHEN outcome = 'hold' THEN 'FAILED'
			WHEN outcome = 'released' AND i.created_at = i.locked_at
			THEN 'COMPLETED'
			ELSE 'PROCESSING' END::paynotify.key_state,
		expires_at = CASE WHEN outcome = 'released'
				AND i.created_at = i.locked_at
			THEN i.created_at - interval '1 day'
			ELSE i.expires_at END,
		lease_token = NULL, lease_expires_at = NULL,
		reason = left(coalesce(guard_release.reason, outcome), 1000)
	WHERE i.tenant = guard_release.tenant AND i.request_path = route
		AND i.key = guard_release.key AND i.state = 'PROCESSING'
		AND i.lease_token = token
		AND i.lease_expires_at > clock_timestamp();
	PERFORM paynotify.guard_must(FOUND, route, guard_release.key);
END
$$;

-- Gateways forget what they remember of the key: it is told by the first half of
-- its SHA-256.
CREATE FUNCTION paynotify.guard_tell(tenant text, route text, key text)
RETURNS void
LANGUAGE sql
AS $$
SELECT pg_notify('paynotify_guard', encode(substr(sha256(convert_to(
	concat_ws(E'\n', tenant, route, key), 'UTF8')), 1, 16), 'hex'))
$$;

-- For operators: the next claim runs, whatever became of the one before; who
-- has the key now loses its lease. It has its whole ttl again, so that it runs
-- where after_expiry = refuse too. PN002: there is no such key. PN003: it has its
-- answer.
CREATE FUNCTION paynotify.guard_set_free(tenant text, route text, key text,
	why text, actor text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
	found_state paynotify.key_state;
BEGIN
	PERFORM paynotify.guard_check(tenant, route, guard_set_free.key);
	SELECT i.state INTO found_state FROM paynotify.idempotency_keys i
	WHERE i.tenant = guard_set_free.tenant AND i.request_path = route
		AND i.key = guard_set_free.key
	FOR UPDATE;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'there is no key "%" of "%"',
			guard_set_free.key, route USING ERRCODE = 'PN002';
	ELSIF found_state = 'COMPLETED' THEN
		RAISE EXCEPTION 'key "%" of "%" has its answer',
			guard_set_free.key, route USING ERRCODE = 'PN003';
	END IF;
	UPDATE paynotify.idempotency_keys i
	SET state = 'PROCESSING', lease_token = NULL, lease_expires_at = NULL,
		crashes = 0, reason = why, expires_at = greatest(i.expires_at,
			clock_timestamp() + (i.expires_at - i.locked_at))
	WHERE i.tenant = guard_set_free.tenant AND i.request_path = route
		AND i.key = guard_set_free.key;
	INSERT INTO paynotify.guard_actions (tenant, route, key, action, actor,
		reason)
	VALUES (guard_set_free.tenant, route, guard_set_free.key, 'release',
		actor, why);
	PERFORM paynotify.guard_tell(tenant, route, guard_set_free.key);
END
$$;

-- For operators: as if the key had never come, in both tiers. PN002: it has
-- not. PN003: somebody is at work under it.
CREATE FUNCTION paynotify.guard_forget(tenant text, route text, key text,
	why text, actor text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
	k paynotify.idempotency_keys;
	was_there boolean;
BEGIN
	-- An older snapshot would miss a key that moved.
	IF current_setting('transaction_isolation') <> 'read committed' THEN
		RAISE EXCEPTION 'keys are forgotten in READ COMMITTED only'
		USING ERRCODE = '25001';
	END IF;
	PERFORM paynotify.guard_check(tenant, route, guard_forget.key);
	-- Once this has its lock no key moves.
	DELETE FROM paynotify.idempotency_keys i
	WHERE i.tenant = guard_forget.tenant AND i.request_path = route
		AND i.key = guard_forget.key
	RETURNING * INTO k;
	was_there := FOUND;
	IF k.lease_token IS NOT NULL
		AND k.lease_expires_at > clock_timestamp() THEN
		RAISE EXCEPTION 'somebody is at work under key "%" of "%"',
			guard_forget.key, route
		USING ERRCODE = 'PN003', HINT = format('The lease ends at %s; '
			'or release the key before.', k.lease_expires_at);
	END IF;
	DELETE FROM paynotify.idempotency_archive a
	WHERE a.tenant = guard_forget.tenant AND a.digest = sha256(
		convert_to(route || E'\n' || guard_forget.key, 'UTF8'));
	IF NOT (FOUND OR was_there) THEN
		RAISE EXCEPTION 'there is no key "%" of "%"',
			guard_forget.key, route USING ERRCODE = 'PN002';
	END IF;
	INSERT INTO paynotify.guard_actions (tenant, route, key, action, actor,
		reason)
	VALUES (guard_forget.tenant, route, guard_forget.key, 'forget', actor,
		why);
	PERFORM paynotify.guard_tell(tenant, route, guard_forget.key);
END
$$;

-- As in 0002, where the locks are explained, with the guard's keys: what is
-- completed and expired moves, and nothing else. A key of the guard may come
-- here again after another life: then the newer one counts.
CREATE OR REPLACE FUNCTION paynotify.archive_expired_keys(max_keys integer)
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
		RETURNING tenant, request_path, key, request_hash, created_at,
			attempts
	)
	INSERT INTO paynotify.idempotency_archive
		(tenant, digest, request_hash, first_seen_at, attempts)
	SELECT tenant, sha256(convert_to(request_path || E'\n' || key, 'UTF8')),
		request_hash, created_at, attempts
	FROM expired
	ORDER BY 1, 2
	ON CONFLICT (tenant, digest) DO UPDATE
	SET request_hash = excluded.request_hash, attempts = excluded.attempts
	WHERE excluded.attempts IS NOT NULL;
	GET DIAGNOSTICS moved = ROW_COUNT;
	RETURN moved;
END
$$;

-- The list of who may do what goes on here.
ALTER FUNCTION paynotify.role_rights() RENAME TO role_rights_0006;
CREATE FUNCTION paynotify.role_rights(OUT grantee text, OUT what text)
RETURNS SETOF record
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
SELECT * FROM paynotify.role_rights_0006()
UNION ALL
VALUES ('consumer', 'EXECUTE ON FUNCTION
	paynotify.guard_claim(text, text, text, bytea, interval, interval,
		text, text, integer, uuid),
	paynotify.guard_complete(text, text, text, uuid, integer, text, bytea),
	paynotify.guard_renew(text, text, text, uuid, interval),
	paynotify.guard_release(text, text, text, uuid, text, text)')
$$;

-- Nothing is for everybody.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA paynotify FROM PUBLIC;
