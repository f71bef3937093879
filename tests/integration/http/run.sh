#!/bin/bash
# The HTTP tests over real sockets and a real PostgreSQL: run.sh BUILD [TEST...]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PN_BUILD=$(cd "$1" && pwd)
export PN_BUILD PYTHONDONTWRITEBYTECODE=1
shift
# shellcheck source=tests/lib/pg.sh
. "$here/../../lib/pg.sh"
# shellcheck source=tests/lib/packages.sh
. "$here/../../lib/packages.sh"
# shellcheck source=tests/lib/promtool.sh
. "$here/../../lib/promtool.sh"
promtool_need "$PN_BUILD"
trap pg_stop EXIT
pg_start
conf=$PN_PG_DIR/migrate.conf
printf '[database]\ndsn = %s\n' "$PN_DSN" >"$conf"
chmod 600 "$conf"
"$PN_BUILD/paynotifyctl" db migrate -c "$conf" >/dev/null
cd "$here"
[ $# -gt 0 ] || set -- -v test_*.py
python3 -m unittest "$@"
