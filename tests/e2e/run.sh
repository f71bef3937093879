#!/bin/bash
# End to end, with signers and verifiers that are not ours: a real daemon, a
# real PostgreSQL, the npm SDKs that merchants use.
#
#   tests/e2e/run.sh [BUILD_DIR]      (default build/release)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "$here/../.." && cd "${1:-build/release}" && pwd)
for p in paynotifyd paynotifyctl; do
    [ -x "$build/$p" ] || { echo "e2e: $build/$p is not built" >&2; exit 1; }
done
. "$here/../lib/pg.sh"

cd "$here"
stamp=node_modules/.package-lock.json
if [ ! -f "$stamp" ] || [ package-lock.json -nt "$stamp" ]; then
    npm ci --no-audit --no-fund --ignore-scripts
    touch "$stamp"
fi

trap pg_stop EXIT
trap 'exit 130' INT TERM
pg_start
export PN_BUILD=$build
# One at a time: each file makes a database and a daemon of its own.
bad=0
for f in test/*.test.mjs; do
    pg_new_database
    node --test --test-reporter=tap "$f" || bad=1
done
exit $bad
