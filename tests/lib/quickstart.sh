#!/bin/bash
# Smoke test of quickstart.sh, as a newcomer runs it: once, again, --stop. In
# this checkout when it has no .local/, else in a copy, so that what a developer
# has running there is left alone.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
work=$(mktemp -d "${TMPDIR:-/tmp}/pn-quick.XXXXXX")
if [ -e .local ]; then
    mkdir "$work/copy"
    git -c safe.directory='*' ls-files -z -co --exclude-standard |
        xargs -0 cp --parents -t "$work/copy" || exit 1
    cd "$work/copy" || exit 1
fi
folder=
finish() {
    ./quickstart.sh --stop >/dev/null 2>&1
    [ -z "$folder" ] || rm -rf "$folder"
    rm -rf .local "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

passed=0 failed=0
check() { # what command...
    local what=$1
    shift
    if "$@" >"$work/out" 2>&1; then
        passed=$((passed + 1))
        echo "ok   $what"
    else
        failed=$((failed + 1))
        echo "FAIL $what"
        tail -40 "$work/out"
    fi
}
says() { grep -qF -- "$1" "$work/first"; }
gone() { ! kill -0 "$1" 2>/dev/null; }

check "a first run ends well" ./quickstart.sh
cp "$work/out" "$work/first"
folder=$(readlink .local/pg)
daemon=$(cat .local/paynotifyd.pid 2>/dev/null || echo none)
check "it tells what runs, in English" says "process $daemon"
check "and in Chinese" says "接下来"
check "it tells how events are handed off, in both" \
    [ "$(grep -cF "paynotify.claim('shop', 10, '1 minute')" "$work/first")" = 2 ]
# An application's tables must not land among the receiver's.
query() { psql -qXAt -h "$(realpath .local/pg)" -U paynotify -d paynotify "$@"; }
check "an unqualified table is public" \
    [ "$(query -c 'CREATE TABLE orders ()' -c "SELECT relnamespace::regnamespace
        FROM pg_class WHERE relname = 'orders'")" = public ]
check "a second run reuses it" ./quickstart.sh
check "the receiver is still the same" \
    [ "$daemon" = "$(cat .local/paynotifyd.pid 2>/dev/null)" ]
check "--stop ends well" ./quickstart.sh --stop
check "the receiver has ended" gone "$daemon"
check "PostgreSQL has ended" [ ! -e .local/pg/data/postmaster.pid ]
echo "$passed passed, $failed failed"
[ $failed = 0 ]
