#!/bin/bash
# The SQL hand-off against a real PostgreSQL: forced interleavings, crashes, the
# ledger.   tests/pull/run.sh [BUILD_DIR] [unittest arguments]
# PN_TESTS names another folder whose tests to run on such a server.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "$here/../.." && cd "${1:-build/release}" && pwd)
[ $# = 0 ] || shift
[ -x "$build/paynotifyctl" ] || { echo "tests: $build/paynotifyctl is not built" >&2; exit 1; }
. "$here/../lib/pg.sh"
. "$here/../lib/python.sh"

dir=$(mktemp -d "${TMPDIR:-/tmp}/pn-pull.XXXXXX")
finish() { pg_stop; rm -rf "$dir"; }
trap finish EXIT
trap 'exit 130' INT TERM

# Nothing here is about what survives a power cut: without fsync databases are
# made ten times quicker.
export PN_PG_CONF="fsync = off
max_connections = 150
deadlock_timeout = 200ms"
pg_start
printf '[database]\ndsn = %s\n' "$PN_DSN" >"$dir/paynotifyd.conf"
"$build/paynotifyctl" db migrate -c "$dir/paynotifyd.conf" >/dev/null
export PN_SQL=$here/../../sql
cd "${PN_TESTS:-$here}"
python=$(pn_python psycopg)
export PYTHONPATH=$here
"$python" -B -c 'import support; support.make_template()'
[ $# -gt 0 ] || [ -n "${PN_TESTS:-}" ] ||
    set -- --halves test_permutations test_register test_roles
"$python" -B "$here/runner.py" "$@"
