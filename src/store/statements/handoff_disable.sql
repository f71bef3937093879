-- The endpoint $1 does not want events any more: so it said at the URL $2. No row:
-- it is somewhere else by now, which has said nothing.
SELECT paynotify.set_consumer_state(c.name, 'disabled', $3::text, 'paynotifyd')
FROM paynotify.consumers c
JOIN paynotify.endpoints e ON e.consumer_id = c.id
WHERE c.name = $1::text AND e.url = $2::text
