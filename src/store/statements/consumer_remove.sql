-- The consumer $1 is forgotten; why, who.
SELECT paynotify.remove_consumer($1::text, $2::text, $3::text)
