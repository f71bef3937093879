-- The tables of the receiver: two tiers of dedup memory, events, evidence,
-- receipts, verifying keys, quarantine.
--
-- Text is COLLATE "C" throughout: keys are bytes, and comparing bytes is the
-- fastest order there is. An index has a query that needs it (named beside it)
-- or it is not there: each costs every notification. Nothing on the receive
-- path is updated or deleted, so the tables stay dense.

-- An enum is checked where a value is read; a CHECK would be set up again by
-- every statement, at 6 % of a lone notification's cost.
CREATE TYPE paynotify.key_state AS ENUM ('PROCESSING', 'COMPLETED', 'FAILED');

CREATE TABLE paynotify.idempotency_keys (
	tenant text COLLATE "C" NOT NULL,
	request_path text COLLATE "C" NOT NULL,
	key text COLLATE "C" NOT NULL,
	request_hash bytea NOT NULL,
	state paynotify.key_state NOT NULL,
	response_status smallint,
	response_headers text COLLATE "C",
	response_body bytea,
	locked_at timestamptz,
	lease_token uuid,
	lease_expires_at timestamptz,
	completed_at timestamptz,
	created_at timestamptz NOT NULL,
	expires_at timestamptz NOT NULL,
	PRIMARY KEY (tenant, request_path, key)
);
-- For paynotify.archive_expired_keys().
CREATE INDEX idempotency_keys_expires_at
	ON paynotify.idempotency_keys (expires_at);
COMMENT ON TABLE paynotify.idempotency_keys IS
	'hot tier of the dedup memory, and the idempotency guard''s keys';

-- The permanent tier, never deleted from. digest is the SHA-256 of
-- request_path, LF, key.
CREATE TABLE paynotify.idempotency_archive (
	tenant text COLLATE "C" NOT NULL,
	digest bytea NOT NULL,
	request_hash bytea NOT NULL,
	first_seen_at timestamptz NOT NULL,
	PRIMARY KEY (tenant, digest)
);
COMMENT ON TABLE paynotify.idempotency_archive IS
	'permanent tier of the dedup memory: a replay next year is a duplicate';

-- Event rows; what applications read is the view paynotify.events. id is the
-- 16 bytes behind evt_, as a uuid because that is half the index.
CREATE TABLE paynotify.event_log (
	seq bigint GENERATED ALWAYS AS IDENTITY,
	received_at timestamptz NOT NULL,
	id uuid NOT NULL,
	receipt_id uuid NOT NULL,
	livemode boolean NOT NULL,
	type text COLLATE "C" NOT NULL,
	provider text COLLATE "C" NOT NULL,
	tenant text COLLATE "C" NOT NULL,
	account text COLLATE "C",
	key text COLLATE "C" NOT NULL,
	request_hash bytea NOT NULL,
	out_trade_no text COLLATE "C",
	transaction_id text COLLATE "C",
	amount bigint,
	order_amount bigint,
	currency text COLLATE "C",
	refund jsonb,
	order_check text COLLATE "C" NOT NULL DEFAULT 'off',
	flags text[] COLLATE "C" NOT NULL DEFAULT '{}',
	occurred_at timestamptz
) PARTITION BY RANGE (received_at);
-- For tail and paging, and for consumers: in order of recording.
CREATE INDEX event_log_seq ON paynotify.event_log (seq);
-- For events show; a key is found by it too (the id is computed from the key).
CREATE INDEX event_log_id ON paynotify.event_log (id);
-- For events list --out-trade-no and an order's timeline.
CREATE INDEX event_log_out_trade_no ON paynotify.event_log (out_trade_no);
COMMENT ON TABLE paynotify.event_log IS
	'one row a business event, for ever; read the view paynotify.events';

-- One row a request and its verdict. raw: capped, of unverified requests only.
CREATE TABLE paynotify.receipts (
	id uuid NOT NULL,
	received_at timestamptz NOT NULL,
	provider text COLLATE "C" NOT NULL,
	tenant text COLLATE "C" NOT NULL,
	request_path text COLLATE "C",
	peer text COLLATE "C",
	notify_id text COLLATE "C",
	out_trade_no text COLLATE "C",
	verdict text COLLATE "C" NOT NULL,
	reason text COLLATE "C",
	status smallint NOT NULL,
	body_bytes integer NOT NULL,
	headers text COLLATE "C",
	raw bytea
) PARTITION BY RANGE (received_at);
-- id is a UUID of version 7, so it is also the order of arrival: for receipts
-- list, and to find whether a request whose COMMIT was cut has its receipt. Not
-- unique: a statement that was cut off and still runs may write the receipt of
-- a request that was sent again meanwhile; who reads takes either.
CREATE INDEX receipts_id ON paynotify.receipts (id);
COMMENT ON TABLE paynotify.receipts IS 'one row a request and its verdict';

-- What was signed, byte for byte, and the key that verified it. headers: one
-- "Name: value" a line, each byte one character (ISO 8859-1), so that bytes
-- that are not UTF-8 survive: convert_to(headers, 'LATIN1') gives them back.
-- payload is JSON; text, since parsing it again for each row costs more than
-- all the rest of the insert (the view has it as json).
CREATE TABLE paynotify.evidence (
	receipt_id uuid NOT NULL,
	received_at timestamptz NOT NULL,
	provider text COLLATE "C" NOT NULL,
	tenant text COLLATE "C" NOT NULL,
	headers text COLLATE "C" NOT NULL,
	body bytea NOT NULL,
	key_fingerprint bytea NOT NULL,
	payload text COLLATE "C"
) PARTITION BY RANGE (received_at);
-- Compressing 3 kB costs 20 times what writing them does.
ALTER TABLE paynotify.evidence
	ALTER COLUMN headers SET STORAGE EXTERNAL,
	ALTER COLUMN body SET STORAGE EXTERNAL,
	ALTER COLUMN payload SET STORAGE EXTERNAL;
ALTER TABLE paynotify.receipts
	ALTER COLUMN headers SET STORAGE EXTERNAL,
	ALTER COLUMN raw SET STORAGE EXTERNAL;
-- For the view's payload and for verifying the evidence of an event.
CREATE INDEX evidence_receipt_id ON paynotify.evidence (receipt_id);
COMMENT ON TABLE paynotify.evidence IS
	'signed bytes and headers of each accepted or quarantined notification';

-- Public keys by fingerprint, so that evidence verifies years later. A
-- symmetric key has its fingerprint only.
CREATE TABLE paynotify.verifying_keys (
	fingerprint bytea PRIMARY KEY,
	pem text COLLATE "C",
	first_seen_at timestamptz NOT NULL DEFAULT now()
);

-- Signed, but not recordable: once per subject (key, else notification id,
-- else body digest) and fingerprint; never capped.
CREATE TABLE paynotify.quarantine (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	tenant text COLLATE "C" NOT NULL,
	subject text COLLATE "C" NOT NULL,
	fingerprint bytea NOT NULL,
	provider text COLLATE "C" NOT NULL,
	request_path text COLLATE "C" NOT NULL,
	reason text COLLATE "C" NOT NULL,
	events json NOT NULL,
	receipt_id uuid NOT NULL,
	received_at timestamptz NOT NULL,
	state text COLLATE "C" NOT NULL DEFAULT 'open'
		CHECK (state IN ('open', 'accepted', 'rejected', 'resolved')),
	resolved_at timestamptz,
	resolved_by text COLLATE "C",
	resolution text COLLATE "C",
	UNIQUE (tenant, subject, fingerprint)
);
COMMENT ON TABLE paynotify.quarantine IS
	'verified notifications that could not be recorded, for an operator';

-- The events as applications read them. The evidence of an event was written
-- by the same statement, hence with the same received_at: joining on it too
-- lets PostgreSQL look into one partition only.
CREATE VIEW paynotify.events AS
SELECT 1 AS schema,
	('evt_' || replace(e.id::text, '-', '')) COLLATE "C" AS id,
	e.seq,
	e.livemode,
	e.type,
	e.provider,
	e.tenant,
	e.account,
	e.key,
	e.out_trade_no,
	e.transaction_id,
	e.amount,
	e.order_amount,
	e.currency,
	e.refund,
	e.order_check,
	e.flags,
	e.occurred_at,
	e.received_at,
	v.payload::json AS payload
FROM paynotify.event_log e
LEFT JOIN paynotify.evidence v
	ON v.receipt_id = e.receipt_id AND v.received_at = e.received_at;
COMMENT ON VIEW paynotify.events IS
	'one row a business event, in order of seq';
