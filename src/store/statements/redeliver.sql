-- Events $2 of the consumer $1 once more; why, who. How many.
SELECT paynotify.redeliver($1::text, $2::int8[], $3::text, $4::text)
