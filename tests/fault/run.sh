#!/bin/bash
# Crash proof: see crash.py (receiving) and handoff.py (handing off).
#
#   tests/fault/run.sh [BUILD_DIR [crash|handoff [--seed N]]]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "$here/../.." && cd "${1:-build/release}" && pwd)
only=${2:-}
if [ $# -lt 2 ]; then shift $#; else shift 2; fi
for p in paynotifyd paynotifyctl; do
    [ -x "$build/$p" ] || { echo "fault: $build/$p is not built" >&2; exit 1; }
done
. "$here/../lib/pg.sh"
. "$here/../lib/conf.sh"
. "$here/../lib/python.sh"
python=$(pn_python psycopg)

dir=$(mktemp -d "${TMPDIR:-/tmp}/pn-fault.XXXXXX")
finish() { pg_stop; rm -rf "$dir"; }
trap finish EXIT
trap 'exit 130' INT TERM

receiving() {
    local port
    port=$(pn_free_port)
    pn_conf "$dir" "$port"
    node "$here/../bench/gen.mjs" --out "$dir" --n "${FAULT_REQUESTS:-16000}" --seed 7 &&
        "$build/paynotifyctl" db migrate -c "$dir/paynotifyd.conf" >/dev/null &&
        python3 -B "$here/crash.py" --daemon "$build/paynotifyd" --dir "$dir" \
            --port "$port" --pg "$here/../lib/pg.sh" "$@"
}

handing_off() {
    mkdir "$dir/handoff" &&
        node "$here/../bench/gen.mjs" --out "$dir/handoff" --n 1 >/dev/null && # the keys
        "$python" -B "$here/handoff.py" --build "$build" --dir "$dir/handoff" \
            --port "$(pn_free_port)" --pg "$here/../lib/pg.sh" "$@"
}

# A server as they are in the field.
PN_PG_CONF="${PN_PG_CONF:-}
autovacuum = on"
pg_start
bad=0
[ "$only" = handoff ] || receiving "$@" || bad=1
pg_new_database
[ "$only" = crash ] || handing_off "$@" || bad=1
exit $bad
