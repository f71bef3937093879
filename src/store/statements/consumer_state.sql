-- The consumer $1 becomes $2; why, who.
SELECT paynotify.set_consumer_state($1::text, $2::text, $3::text, $4::text)
