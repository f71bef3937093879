#!/bin/bash
# The examples, each as it is copied: a real daemon, PostgreSQL, MariaDB.
#   tests/examples/run.sh [BUILD_DIR] [unittest arguments]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "$here/../.." && cd "${1:-build/release}" && pwd)
[ $# = 0 ] || shift
for p in paynotifyd paynotifyctl; do
    [ -x "$build/$p" ] || { echo "examples: $build/$p is not built" >&2; exit 1; }
done
for f in pg conf python mariadb; do . "$here/../lib/$f.sh"; done

cd "$here"
stamp=node_modules/.package-lock.json
if [ ! -f "$stamp" ] || [ package-lock.json -nt "$stamp" ]; then
    npm ci --no-audit --no-fund --ignore-scripts
    touch "$stamp"
fi
python=$(pn_python psycopg,pymysql,cryptography)

dir=$(mktemp -d "${TMPDIR:-/tmp}/pn-examples.XXXXXX")
finish() { mariadb_stop; pg_stop; rm -rf "$dir"; }
trap finish EXIT
trap 'exit 130' INT TERM

mariadb_start
pg_start
node ../bench/gen.mjs --out "$dir" --n 500 --dup 0.1 --seed 11 >/dev/null
export PN_PORT PN_HOOK_PORT PN_DIR=$dir PN_BUILD=$build PN_PYTHON=$python
PN_PORT=$(pn_free_port)
PN_HOOK_PORT=$(pn_free_port)
(
    umask 077
    echo "whsec_$(openssl rand -base64 24)" >"$dir/hook.secret"
)
pn_conf "$dir" "$PN_PORT" # the last section is followed by another
cat >>"$dir/paynotifyd.conf" <<CONF
[deliver mysql]
url = http://127.0.0.1:$PN_HOOK_PORT/events
secret_file = hook.secret
max_in_flight = 8
CONF
"$build/paynotifyctl" db migrate -c "$dir/paynotifyd.conf" >/dev/null
[ $# -gt 0 ] || set -- test_examples test_guard test_charges
PYTHONPATH=$here/charges "$python" -B ../pull/runner.py "$@"
