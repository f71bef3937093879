-- The application's own table in the examples: a row an event. Where a payment
-- changes something else (an order is paid, goods go out), do that in the same
-- transaction.
CREATE TABLE payments (
	event_id varchar(40) PRIMARY KEY,
	type varchar(64) NOT NULL,
	out_trade_no varchar(64),
	amount bigint, -- in fen
	currency char(3)
);
