-- A double-entry ledger that is fed by the SQL hand-off, exactly once. Not a
-- migration: run it by hand in the database that has the schema paynotify, and
-- change it to your chart of accounts.
--
--   psql -v ON_ERROR_STOP=1 -1 -f ledger.sql
--   SELECT paynotify.register_consumer('ledger', NULL,
--       ARRAY['payment.succeeded', 'refund.succeeded']);
--
-- Then, again and again (tests/examples has loops in shell, Python and Node):
--
--   DO $$
--   DECLARE
--       e record;
--   BEGIN
--       FOR e IN SELECT * FROM paynotify.claim('ledger', 100, '1 minute') LOOP
--           BEGIN
--               PERFORM ledger.post(e.seq);
--               PERFORM paynotify.ack(e.token);
--           EXCEPTION WHEN OTHERS THEN
--               RAISE WARNING 'event %: %', e.seq, SQLERRM;
--               PERFORM paynotify.nack(e.token, '5 minutes', SQLERRM);
--           END;
--       END LOOP;
--   END $$;
--
-- The block with EXCEPTION is a savepoint: an event that fails is undone alone,
-- waits five minutes with the reason (paynotifyctl deliveries list shows it), and
-- holds back its own order. Without it, one bad event would roll back all others
-- that were claimed with it, each time anew.
--
-- What holds, whoever writes:
--
-- * Debits equal credits in every entry and currency, at COMMIT (a deferred
--   constraint trigger). An entry is closed when its transaction ends.
-- * Nothing is changed or deleted, not even by the owner: a mistake is put right
--   by another entry.
-- * An event is posted once: journal.event_id is unique. ledger.post() reads the
--   amounts from paynotify.events, so nobody can post what was never notified.
-- * Alipay tells the cumulative sum of an order's refunds, not the single one.
--   What is posted is the difference to the sum posted so far; a sum that is not
--   higher (its notification was overtaken) adds nothing. Each of these entries
--   names the sum before it, which is unique in its order: two that start from
--   the same sum cannot both commit.
-- * What is genuine but cannot be posted is parked in ledger.unposted, and done:
--   Alipay may tell that a refund was made, and no sum at all (the difference of
--   the next sum has it then), or a currency that has no code. Whoever has posted
--   one of these by hand deletes its row. An event of amount 0 moves nothing.
--
-- Amounts are bigint in minor units (fen), as in paynotify.events.
CREATE SCHEMA ledger;

CREATE TABLE ledger.accounts (
	code text COLLATE "C" PRIMARY KEY,
	-- Which side makes it grow.
	normal_side text NOT NULL CHECK (normal_side IN ('debit', 'credit'))
);

CREATE TABLE ledger.journal (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	event_id text COLLATE "C" NOT NULL UNIQUE,
	provider text COLLATE "C" NOT NULL,
	tenant text COLLATE "C" NOT NULL,
	account text COLLATE "C" NOT NULL,
	out_trade_no text COLLATE "C" NOT NULL,
	what text COLLATE "C" NOT NULL,
	occurred_at timestamptz NOT NULL,
	posted_at timestamptz NOT NULL DEFAULT now(),
	posted_in xid8 NOT NULL DEFAULT pg_current_xact_id(),
	-- Of Alipay's refunds: the cumulative sum before and after.
	refunded_before bigint,
	refunded_total bigint,
	UNIQUE (tenant, account, out_trade_no, refunded_before),
	CHECK (refunded_total > refunded_before)
);

CREATE TABLE ledger.postings (
	journal_id bigint NOT NULL REFERENCES ledger.journal,
	account_code text COLLATE "C" NOT NULL REFERENCES ledger.accounts,
	currency char(3) NOT NULL,
	debit bigint NOT NULL DEFAULT 0 CHECK (debit >= 0),
	credit bigint NOT NULL DEFAULT 0 CHECK (credit >= 0),
	PRIMARY KEY (journal_id, account_code, currency),
	CHECK ((debit = 0) <> (credit = 0))
);

CREATE TABLE ledger.unposted (
	event_id text COLLATE "C" PRIMARY KEY,
	seq bigint NOT NULL, -- of paynotify.events
	reason text NOT NULL,
	parked_at timestamptz NOT NULL DEFAULT now()
);

CREATE FUNCTION ledger.check_entry() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
	entry bigint := CASE TG_TABLE_NAME WHEN 'journal' THEN
		to_jsonb(NEW)->>'id' ELSE to_jsonb(NEW)->>'journal_id' END;
BEGIN
	IF NOT EXISTS (SELECT FROM ledger.postings p
		WHERE p.journal_id = entry) THEN
		RAISE EXCEPTION 'entry % has no postings', entry
		USING ERRCODE = 'check_violation';
	END IF;
	IF EXISTS (SELECT FROM ledger.postings p
		WHERE p.journal_id = entry
		GROUP BY p.currency HAVING sum(p.debit) <> sum(p.credit)) THEN
		RAISE EXCEPTION 'entry % does not balance', entry
		USING ERRCODE = 'check_violation';
	END IF;
	IF (SELECT j.posted_in FROM ledger.journal j WHERE j.id = entry)
		<> pg_current_xact_id() THEN
		RAISE EXCEPTION 'entry % is closed', entry
		USING ERRCODE = 'check_violation';
	END IF;
	RETURN NULL;
END
$$;

CREATE CONSTRAINT TRIGGER balances AFTER INSERT ON ledger.journal
	DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW EXECUTE FUNCTION ledger.check_entry();
CREATE CONSTRAINT TRIGGER balances AFTER INSERT ON ledger.postings
	DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW EXECUTE FUNCTION ledger.check_entry();

CREATE FUNCTION ledger.refuse() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
	RAISE EXCEPTION 'the ledger is only added to: no % of %', TG_OP,
		TG_TABLE_NAME
	USING ERRCODE = 'insufficient_privilege',
		HINT = 'Post an entry that puts it right.';
END
$$;

DO $$
DECLARE
	t text;
BEGIN
	FOREACH t IN ARRAY ARRAY['accounts', 'journal', 'postings'] LOOP
		EXECUTE format('CREATE TRIGGER only_added_to
			BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger.%I
			FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse()', t);
		-- In a session that plays a replica, too.
		EXECUTE format('ALTER TABLE ledger.%I
			ENABLE ALWAYS TRIGGER only_added_to', t);
	END LOOP;
	ALTER TABLE ledger.journal ENABLE ALWAYS TRIGGER balances;
	ALTER TABLE ledger.postings ENABLE ALWAYS TRIGGER balances;
END
$$;

-- Two lines: from one account to another.
CREATE FUNCTION ledger.move(entry bigint, debit_code text, debit_side text,
	credit_code text, credit_side text, currency text, amount bigint)
RETURNS void
LANGUAGE sql
AS $$
	-- In order of their codes, so that two who open both never deadlock.
	INSERT INTO ledger.accounts (code, normal_side)
	SELECT * FROM (VALUES (debit_code, debit_side),
		(credit_code, credit_side)) a (code, side)
	WHERE NOT EXISTS (SELECT FROM ledger.accounts o
		WHERE o.code = a.code)
	ORDER BY a.code
	ON CONFLICT DO NOTHING;
	INSERT INTO ledger.postings (journal_id, account_code, currency, debit,
		credit)
	VALUES (entry, debit_code, currency, amount, 0),
		(entry, credit_code, currency, 0, amount);
$$;

-- Posts an event, once. false: there was nothing to post - it has been posted
-- before, moves no money, or is an Alipay refund whose sum is posted already - or
-- it could not be posted and is in ledger.unposted.
CREATE FUNCTION ledger.post(event_seq bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	e paynotify.events;
	entry bigint;
	money bigint;
	total bigint;  -- of the order's refunds, where the event tells it
	posted bigint; -- and what is posted of it
	trouble text;
BEGIN
	SELECT * INTO STRICT e FROM paynotify.events v WHERE v.seq = event_seq;
	IF e.type NOT IN ('payment.succeeded', 'refund.succeeded') THEN
		RETURN false;
	END IF;
	money := e.amount;
	IF e.type = 'refund.succeeded' AND money IS NULL THEN
		total := (e.refund->>'refunded_total')::bigint;
		SELECT coalesce(max(j.refunded_total), 0) INTO posted
		FROM ledger.journal j
		WHERE j.tenant = e.tenant
			AND j.account = coalesce(e.account, '')
			AND j.out_trade_no = coalesce(e.out_trade_no, '');
		money := CASE WHEN total > posted THEN total - posted
			WHEN total <= posted THEN 0 END; -- or no sum at all
	END IF;
	trouble := CASE WHEN money IS NULL THEN 'it tells no amount'
		WHEN money <> 0 AND (e.currency ~ '^[A-Z]{3}$') IS NOT TRUE
			THEN 'it tells no currency' END;
	IF trouble IS NOT NULL THEN
		INSERT INTO ledger.unposted (event_id, seq, reason)
		VALUES (e.id, e.seq, trouble)
		ON CONFLICT DO NOTHING;
		RETURN false;
	END IF;
	IF money = 0 THEN
		RETURN false;
	END IF;
	INSERT INTO ledger.journal (event_id, provider, tenant, account,
		out_trade_no, what, occurred_at, refunded_before, refunded_total)
	VALUES (e.id, e.provider, e.tenant, coalesce(e.account, ''),
		coalesce(e.out_trade_no, ''), e.type,
		coalesce(e.occurred_at, e.received_at), posted, total)
	ON CONFLICT (event_id) DO NOTHING
	RETURNING id INTO entry;
	IF entry IS NULL THEN
		RETURN false;
	END IF;
	IF e.type = 'payment.succeeded' THEN
		PERFORM ledger.move(entry,
			format('assets:%s:%s', e.provider, e.account), 'debit',
			format('income:%s:sales', e.tenant), 'credit',
			e.currency, money);
	ELSE
		PERFORM ledger.move(entry,
			format('refunds:%s', e.tenant), 'debit',
			format('assets:%s:%s', e.provider, e.account), 'debit',
			e.currency, money);
	END IF;
	RETURN true;
END
$$;

-- Each account's sums, and its balance on the side that makes it grow.
CREATE VIEW ledger.balances AS
SELECT a.code, p.currency, sum(p.debit) AS debit, sum(p.credit) AS credit,
	CASE a.normal_side WHEN 'debit' THEN sum(p.debit) - sum(p.credit)
	ELSE sum(p.credit) - sum(p.debit) END AS balance
FROM ledger.accounts a
JOIN ledger.postings p ON p.account_code = a.code
GROUP BY a.code, a.normal_side, p.currency;

-- Who posts may not write otherwise: GRANT ledger_clerk, paynotify_consumer TO
-- the role of the application.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ledger FROM PUBLIC;
DO $$
BEGIN
	IF to_regrole('ledger_clerk') IS NULL THEN
		CREATE ROLE ledger_clerk NOLOGIN;
	END IF;
END
$$;
GRANT USAGE ON SCHEMA ledger TO ledger_clerk;
GRANT SELECT ON ALL TABLES IN SCHEMA ledger TO ledger_clerk;
GRANT EXECUTE ON FUNCTION ledger.post(bigint) TO ledger_clerk;
