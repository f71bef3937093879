#!/bin/bash
# Runs one test program of the store against a PostgreSQL of its own:
#
#   tests/integration/run.sh PROGRAM
#
# PN_DSN names the server; the programs make databases as they need them.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../lib/pg.sh"
trap 'pg_stop; [ -z "${second:-}" ] || PN_PG_DIR=$second pg_stop' EXIT

pg_start
if [ "${PN_SECOND_SERVER:-}" = yes ]; then
    # A second cluster; the program stops the first with $PN_STOP_FIRST.
    second=$PN_PG_DIR
    pg_start
    export PN_DSN_BOTH="host=$PN_PG_DIR,$second user=paynotify"
    export PN_FIRST_HOST=$PN_PG_DIR PN_SECOND_HOST=$second
    as=""
    [ "$(id -u)" != 0 ] || as="runuser -u $PN_PG_USER --"
    export PN_STOP_FIRST="cd / && $as $PN_PG_BIN/pg_ctl -D $PN_PG_DIR/data -m fast -w stop >/dev/null"
fi
"$1"
