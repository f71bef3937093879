-- Of the tenant $1, under the route $2, the key $3: the next one runs. $4 why,
-- $5 who. Tells the daemons, one of which may be waiting for the key.
SELECT paynotify.guard_set_free($1::text, $2::text, $3::text, $4::text,
	$5::text)
