#!/bin/bash
# The template provider end to end: a daemon that has it in its tables receives,
# records once and answers in its words; the release has it not. run.sh BUILD
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "$1" && pwd)
with=$build/tests/template
# shellcheck source=tests/lib/pg.sh
. "$here/../../lib/pg.sh"
daemon=
stop() {
    [ -z "$daemon" ] || { kill "$daemon" && wait "$daemon"; } || true
    pg_stop
}
trap stop EXIT
pg_start
work=$PN_PG_DIR/template
mkdir "$work"
printf 'template-secret-0001' >"$work/secret"
printf '%s\n' '[server]' 'listen = 127.0.0.1:0' '[database]' "dsn = $PN_DSN" \
    '[template shop1]' 'merchant = M1' "secret_file = $work/secret" 'test = yes' \
    >"$work/conf"
chmod 600 "$work/secret" "$work/conf"
: >"$work/log"
: >"$work/out"
wrong() { echo "WRONG: $*" >&2; cat "$work/log" "$work/out" >&2; exit 1; }

status=0
"$build/paynotifyd" --check -c "$work/conf" >"$work/out" 2>&1 || status=$?
[ $status = 78 ] || wrong "a release takes [template shop1]: $status"
"$with/paynotifyd" --check -c "$work/conf" >"$work/out" 2>&1 || wrong "--check"

"$with/paynotifyctl" db migrate -c "$work/conf" >"$work/out" 2>&1 || wrong migrate
"$with/paynotifyd" -c "$work/conf" 2>"$work/log" &
daemon=$!
for _ in {1..600}; do
    grep -q 'listening on' "$work/log" && break
    sleep 0.1
done
port=$(sed -n 's/.*listening on 127\.0\.0\.1:\([0-9]*\).*/\1/p' "$work/log")
[ -n "$port" ] || wrong "it does not listen"
trigger() {
    "$with/paynotifyctl" trigger -c "$work/conf" --account template/shop1 \
        --to "http://127.0.0.1:$port/notify/template/shop1" payment.succeeded "$@" \
        >"$work/out" 2>&1
}
count() { psql -qXAt -c "SELECT count(*) FROM paynotify.$1"; }

trigger --out-trade-no TP1 || wrong "trigger"
trigger --out-trade-no TP1 || wrong "trigger once more"
[ "$(count "events WHERE key = 'webhook:template:x-TP1' AND amount = 8888 AND NOT livemode")" = 1 ] ||
    wrong "not one event"
[ "$(count "receipts WHERE verdict = 'duplicate'")" = 1 ] || wrong "no duplicate"
trigger --out-trade-no TP2 --oddity tampered && wrong "a forgery is taken"
[ "$(count events)" = 1 ] || wrong "a forgery is recorded"
echo "ok template provider, end to end"
