-- The tables of the hand-off. event_log itself is the queue: ingest writes
-- nothing for a consumer, so consumers cost the receive path nothing. What a
-- consumer has done is a low-water mark and, above and around it, one row for
-- each event that is not finished.

-- Who gets events: an application that pulls by SQL (claim, ack), or an
-- endpoint that the daemon pushes to. type_patterns: types as LIKE patterns.
CREATE TABLE paynotify.consumers (
	id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	name text COLLATE "C" NOT NULL UNIQUE,
	tenants text[] COLLATE "C",
	types text[] COLLATE "C",
	type_patterns text[] COLLATE "C",
	start_at timestamptz NOT NULL,
	pushed boolean NOT NULL,
	state text COLLATE "C" NOT NULL DEFAULT 'active'
		CHECK (state IN ('active', 'paused', 'disabled')),
	reason text COLLATE "C",
	created_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE paynotify.consumers IS
	'who gets events: applications that pull, endpoints that are pushed to';

-- Where a pushed consumer is. Its secrets are files of the daemons', never here.
CREATE TABLE paynotify.endpoints (
	consumer_id integer PRIMARY KEY REFERENCES paynotify.consumers,
	url text COLLATE "C" NOT NULL
);

-- Every event with seq <= mark has been claimed by the consumer, or is not for
-- it. The newest row counts; rows are only added here (and the old ones deleted
-- at leisure), since the versions of one row that is updated all the time pile
-- up behind an old snapshot, and every reader wades through them. Read from the
-- end of the index, the newest is always the first. The rest tells where to
-- begin to look, past what is dead but cannot be vacuumed: when the consumer was
-- last tended (paynotify.tend), up to where done rows have been removed, and
-- behind what number and time nothing waits or is due.
CREATE TABLE paynotify.consumer_marks (
	consumer_id integer NOT NULL,
	seq bigint NOT NULL,
	tended_at timestamptz NOT NULL DEFAULT '-infinity',
	cleaned_seq bigint NOT NULL DEFAULT 0,
	waiting_seq bigint NOT NULL DEFAULT 0,
	due_from timestamptz NOT NULL DEFAULT '-infinity'
);
CREATE INDEX consumer_marks_newest
	ON paynotify.consumer_marks (consumer_id, seq, tended_at);

-- An event that a consumer has claimed and not finished. No row and
-- seq <= mark: done.
--
--   (no row) --claim--> leased --ack, settle--> (no row), or done
--       |                 |  \--nack, lease ends--> retry --claim--> leased
--       |                 \--settle--> dead --redeliver--> retry
--       \--claim, behind an unfinished event of its order--> waiting
--   waiting --the one before it is finished--> retry
--
-- done: acknowledged, and the mark has not passed it yet.
CREATE TABLE paynotify.deliveries (
	consumer_id integer NOT NULL,
	seq bigint NOT NULL,
	received_at timestamptz NOT NULL,
	-- Of tenant, account and out_trade_no; NULL: not held by any order.
	order_hash bigint,
	state text COLLATE "C" NOT NULL,
	attempts integer NOT NULL,
	token uuid,
	lease_expires_at timestamptz,
	retry_at timestamptz,
	redelivery boolean NOT NULL DEFAULT false,
	reason text COLLATE "C",
	PRIMARY KEY (consumer_id, seq)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02,
	autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
-- For the claim: is an earlier event of this order unfinished? Who asks hides the
-- other columns from the planner (consumer_id + 0): with statistics of an empty
-- table the primary key looks as good, and would be read from its beginning.
CREATE INDEX deliveries_order
	ON paynotify.deliveries (order_hash, seq) WHERE order_hash IS NOT NULL;
-- For the claim: what is due again?
CREATE INDEX deliveries_due
	ON paynotify.deliveries (consumer_id, retry_at) WHERE state = 'retry';
-- For paynotify.tend: who waits for an order that goes on?
CREATE INDEX deliveries_waiting
	ON paynotify.deliveries (consumer_id, seq) WHERE state = 'waiting';
-- For deliveries list --state dead.
CREATE INDEX deliveries_dead
	ON paynotify.deliveries (consumer_id, seq) WHERE state = 'dead';
COMMENT ON TABLE paynotify.deliveries IS
	'events that a consumer has claimed and not finished';

-- One row a claim: what to look through when leases end. A row for each event
-- would do, with an index by time; but dead rows pile up behind an old snapshot
-- in exactly that place, and these are a hundred times fewer.
CREATE TABLE paynotify.claims (
	consumer_id integer NOT NULL,
	expires_at timestamptz NOT NULL,
	seqs bigint[] NOT NULL
);
CREATE INDEX claims_expires_at
	ON paynotify.claims (consumer_id, expires_at);

-- Every attempt of a push. answer: the first bytes of the body.
CREATE TABLE paynotify.delivery_attempts (
	started_at timestamptz NOT NULL,
	consumer_id integer NOT NULL,
	seq bigint NOT NULL,
	attempt integer NOT NULL,
	outcome text COLLATE "C" NOT NULL,
	status integer,
	latency_us bigint,
	error text COLLATE "C",
	answer bytea,
	redelivery boolean NOT NULL
) PARTITION BY RANGE (started_at);
-- For deliveries show.
CREATE INDEX delivery_attempts_seq ON paynotify.delivery_attempts (seq);
COMMENT ON TABLE paynotify.delivery_attempts IS
	'every attempt to push an event to an endpoint';

-- Who did what by hand, and why. seq NULL: to the consumer as a whole.
CREATE TABLE paynotify.delivery_actions (
	at timestamptz NOT NULL DEFAULT clock_timestamp(),
	consumer_id integer NOT NULL,
	seq bigint,
	action text COLLATE "C" NOT NULL,
	actor text COLLATE "C" NOT NULL,
	reason text COLLATE "C" NOT NULL
);
CREATE INDEX delivery_actions_seq ON paynotify.delivery_actions (seq);
