#!/bin/bash
# The gateway over real HTTP: daemons, an upstream, a PostgreSQL.
#   tests/gateway/run.sh [BUILD_DIR] [unittest arguments]
# Every module is a process with a database of its own, and they run side by
# side, since they wait more than they compute; test_database has a server of
# its own, which it kills. PN_LOGS=1: what failed prints the daemons' logs;
# PN_WAIT: how many seconds is never.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PN_BUILD=$(cd "$here/../.." && cd "${1:-build/release}" && pwd)
[ $# = 0 ] || shift
for p in paynotifyd paynotifyctl; do
    [ -x "$PN_BUILD/$p" ] ||
        { echo "tests: $PN_BUILD/$p is not built" >&2; exit 1; }
done
. "$here/../lib/pg.sh"
. "$here/../lib/python.sh"

dir=$(mktemp -d "${TMPDIR:-/tmp}/pn-gw.XXXXXX")
finish() { pg_stop; rm -rf "$dir"; }
trap finish EXIT
trap 'exit 130' INT TERM

# Nothing here is about what survives a power cut: without fsync databases are
# made ten times quicker. A killed server loses nothing either way.
export PN_PG_CONF="fsync = off
shared_buffers = 64MB
max_connections = 200"
pg_start
printf '[database]\ndsn = %s\n' "$PN_DSN" >"$dir/paynotifyd.conf"
"$PN_BUILD/paynotifyctl" db migrate -c "$dir/paynotifyd.conf" >/dev/null
cd "$here"
python=$(pn_python psycopg)
export PN_BUILD PN_PG_LIB=$here/../lib/pg.sh PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH=$here
"$python" "$here/runner.py" "$@"
