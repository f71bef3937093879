-- Of the tenant $1, under the route $2, the key $3: as if it had never come.
-- $4 why, $5 who. Tells the daemons, which remember answers.
SELECT paynotify.guard_forget($1::text, $2::text, $3::text, $4::text, $5::text)
