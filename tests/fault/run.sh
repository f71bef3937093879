#!/bin/bash
# Crash proof: see crash.py.   tests/fault/run.sh [BUILD_DIR] [--seed N ...]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "$here/../.." && cd "${1:-build/release}" && pwd)
[ $# = 0 ] || shift
[ -x "$build/paynotifyd" ] || { echo "fault: $build/paynotifyd is not built" >&2; exit 1; }
. "$here/../lib/pg.sh"
. "$here/../lib/conf.sh"

dir=$(mktemp -d "${TMPDIR:-/tmp}/pn-fault.XXXXXX")
finish() { pg_stop; rm -rf "$dir"; }
trap finish EXIT
trap 'exit 130' INT TERM

pg_start
node "$here/../bench/gen.mjs" --out "$dir" --n "${FAULT_REQUESTS:-16000}" --seed 7
port=$(pn_free_port)
pn_conf "$dir" "$port"
"$build/paynotifyctl" db migrate -c "$dir/paynotifyd.conf" >/dev/null
python3 -B "$here/crash.py" --daemon "$build/paynotifyd" --dir "$dir" \
    --port "$port" --pg "$here/../lib/pg.sh" "$@"
