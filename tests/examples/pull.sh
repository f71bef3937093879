#!/bin/bash
# An application that takes its events by SQL, in shell: PGHOST, PGDATABASE,
# PGUSER ... say where. Each event is worked on and acknowledged in one
# transaction, so it is done exactly once.
#
#   pull.sh [--drain]       --drain: ends when there is nothing left
set -euo pipefail
consumer=${CONSUMER:-shop-sh}
sep=$'\x1f' # between fields: not white space, or empty ones would vanish

sql() { psql -qXAt -F "$sep" -v ON_ERROR_STOP=1 "$@"; }

sql -v consumer="$consumer" -f - <<<"SELECT paynotify.register_consumer(:'consumer')" >/dev/null
while :; do
    # Ten events for five minutes: enough for ten of these transactions.
    events=$(sql -v consumer="$consumer" -f - <<'SQL'
SELECT token, id, type, out_trade_no, amount, currency
FROM paynotify.claim(:'consumer', 10, '5 minutes')
SQL
    )
    if [ -z "$events" ]; then
        [ "${1:-}" != --drain ] || exit 0
        sleep 1
        continue
    fi
    while IFS=$sep read -r token id type order amount currency; do
        # -1: one transaction. If the lease was lost meanwhile, ack fails, and all
        # of it.
        error=$(
            sql -1 -v token="$token" -v id="$id" -v type="$type" -v order="$order" \
                -v amount="$amount" -v currency="$currency" -f - 2>&1 >/dev/null <<'SQL'
INSERT INTO payments (event_id, type, out_trade_no, amount, currency)
VALUES (:'id', :'type', nullif(:'order', ''), nullif(:'amount', '')::bigint,
	nullif(:'currency', ''));
SELECT paynotify.ack(:'token');
SQL
        ) && continue
        echo "event $id: $error" >&2
        # Later. If that fails as well, it comes again when its lease ends.
        sql -v token="$token" -v why="${error:0:200}" -f - >/dev/null \
            <<<"SELECT paynotify.nack(:'token', '5 minutes', :'why')" || true
    done <<<"$events"
done
