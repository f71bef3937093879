-- The endpoint $1 does not want events any more.
SELECT paynotify.set_consumer_state($1::text, 'disabled', $2::text,
	'paynotifyd')
