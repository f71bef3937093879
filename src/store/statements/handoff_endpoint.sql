-- An endpoint of the configuration: name, tenants, types, url, and where it
-- begins if it is new. False: a consumer that pulls has the name.
SELECT paynotify.put_endpoint($1::text, $2::text[], $3::text[], $4::text,
	$5::timestamptz)
