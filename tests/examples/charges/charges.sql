-- The shop's own table of the charges API: a row an order.
CREATE TABLE charges (
	order_id text PRIMARY KEY, -- and the out_trade_no of the provider
	amount bigint NOT NULL CHECK (amount > 0), -- in fen
	provider text NOT NULL,
	subject text NOT NULL,
	key text NOT NULL, -- the Idempotency-Key that made it
	attempt integer NOT NULL, -- the highest Idempotency-Attempt seen
	code text, -- what the buyer scans; NULL: the provider has not answered
	created_at timestamptz NOT NULL DEFAULT now()
);
