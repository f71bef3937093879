-- The consumer $1 does not get the events $2; why, who. How many.
SELECT paynotify.skip($1::text, $2::int8[], $3::text, $4::text)
