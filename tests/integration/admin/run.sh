#!/bin/bash
# The admin port over real sockets and a real PostgreSQL: run.sh BUILD [TEST...]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PN_BUILD=$(cd "$1" && pwd)
export PN_BUILD PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$here/../http
shift
# shellcheck source=tests/lib/pg.sh
. "$here/../../lib/pg.sh"
trap pg_stop EXIT
pg_start
conf=$PN_PG_DIR/migrate.conf
printf '[database]\ndsn = %s\n' "$PN_DSN" >"$conf"
chmod 600 "$conf"
"$PN_BUILD/paynotifyctl" db migrate -c "$conf" >/dev/null
cd "$here"
if [ $# -gt 0 ]; then
    python3 -m unittest "$@"
else
    python3 -m unittest -v test_access test_read test_act test_faults
fi
