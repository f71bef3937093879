#!/bin/bash
# The bench: what is promised of speed and memory, as ratios in one run. Takes
# about a quarter of an hour; needs a machine that is otherwise idle.
#
#   tests/bench/run.sh [--build DIR] [--runs N] [--seconds S] [--write]
#                      [--only STAGE...]
#
# Stages: throughput added archive lone memory crowd start (see bench.py), pull push
# latency receiving (see handoff.py), guard (see guard.py). --write makes
# tests/bench/RESULTS.md anew.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$here/../lib/pg.sh"
. "$here/../lib/packages.sh"

build=$root/build/release more=()
while [ $# -gt 0 ]; do
    case $1 in
    --build) build=$(cd "$2" && pwd); shift ;;
    --write) more+=(--write "$here/RESULTS.md") ;;
    *) more+=("$1") ;;
    esac
    shift
done
packages_need postgresql-15 postgresql-contrib python3-fastapi python3-uvicorn \
    python3-asyncpg python3-uvloop python3-httptools python3-cryptography python3-psycopg2 \
    redis-server
packages_node
if [ ! -f "$build/build.ninja" ]; then
    (cd "$root" && cmake --preset "$(basename "$build")" >/dev/null)
fi
ninja -C "$build" ${BENCH_TARGETS:-paynotifyd paynotifyctl load sink} >/dev/null
peer=$here/peers/node
[ "$peer/node_modules/.package-lock.json" -nt "$peer/package-lock.json" ] || (cd "$peer" && npm ci --no-audit --no-fund >/dev/null)

dir=$(mktemp -d "${TMPDIR:-/tmp}/pn-bench.XXXXXX")
huge=/proc/sys/vm/nr_hugepages huge_before=
finish() {
    pg_stop
    rm -rf "$dir"
    [ -z "$huge_before" ] || echo "$huge_before" >$huge
}
trap finish EXIT
trap 'exit 130' INT TERM
# A quarter of the memory, in huge pages where we may reserve them: both as the manual
# of PostgreSQL advises.
buffers=$(awk '/^MemTotal/ { print int($2 / 4096) }' /proc/meminfo)
if [ -w $huge ]; then
    huge_before=$(<$huge)
    echo $((buffers / 2 + 300)) >$huge
fi
export PN_PG_CONF="shared_buffers = ${buffers}MB
checkpoint_timeout = 30min
max_wal_size = 16GB
min_wal_size = 2GB
autovacuum = on
autovacuum_naptime = 10min"
pg_start
# A server that has run for a day writes over old segments of the WAL. A new one
# makes each of them anew, 16 MB of zeros and two fsyncs while a commit waits:
# tens of milliseconds, every few thousand notifications. So make old ones.
psql -qXAt -c "SELECT pg_logical_emit_message(false, 'bench', ''),
    pg_switch_wal() FROM generate_series(1, 100)" -c CHECKPOINT >/dev/null
# The keys that all requests are signed with.
node "$here/gen.mjs" --out "$dir" --n 1 >/dev/null
/usr/bin/python3 -B "$here/bench.py" --build "$build" --dir "$dir" \
    --conf-sh "$here/../lib/conf.sh" \
    --pg-pid "$(head -1 "$PN_PG_DIR/data/postmaster.pid")" "${more[@]}"
