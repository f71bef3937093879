#!/bin/bash
# Runs everything, the quick parts first; installs what is missing (Debian).
#
#   tests/run.sh              all stages
#   tests/run.sh STAGE...     these, in this order; --list names them
#
# Without names, once the programs are built, what only computes (lint, clang, the
# sanitizers, fuzzing) runs beside what mostly waits for servers and processes; the
# output of each comes when it has ended.
# A stage that fails does not keep the others from running; the exit status is
# 1 when one did. Output of each stage: build/logs/STAGE.log as well. Needs no
# standard input, leaves nothing running.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
. tests/lib/packages.sh
. tests/lib/pg.sh
exec </dev/null

FIRST=(build golden)
WAITING=(pull commands guard examples e2e crash package quickstart)
COMPUTING=(lint clang asan tsan fuzz)
STAGES=("${FIRST[@]}" "${WAITING[@]}" "${COMPUTING[@]}")
# The same without sanitizers, for whoever waits for it: asan and tsan run all of
# these tests.
MORE=(unit integration)
STAGE_SECONDS_MAX=800
FUZZ_SECONDS=${FUZZ_SECONDS:-30} # on each core: a minute in all
jobs=$(nproc)
logs=build/logs
# A killed server loses nothing without fsync either, a power cut is nobody's test
# here, and databases are made ten times quicker. What is about crashes keeps it.
export PN_PG_CONF='fsync = off'
# Their folders are in memory, where there is enough: a database is some 300 files.
PN_PG_TMP=/tmp
[ "$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }')" -gt 6000000 ] 2>/dev/null &&
    [ -w /dev/shm ] && PN_PG_TMP=/dev/shm
export PN_PG_TMP
# Asked for the dependencies that the compiler writes anyway, ccache need not run
# the preprocessor first, which for our files is half of compiling.
export CCACHE_DEPEND=1
export CTEST_OUTPUT_ON_FAILURE=1 NO_COLOR=1 CLICOLOR=0
# A python3 that is a script of pyenv starts a dozen processes to find the real one.
python=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null) &&
    PATH=$(dirname "$python"):$PATH
[ -w "${HOME:-/}" ] || export CCACHE_DIR=$PWD/build/ccache

NEEDED=(gcc libc6-dev clang lld cmake ninja-build pkg-config ccache clang-format-14
    clang-tidy-14 python3 git openssl curl jq procps
    libmicrohttpd-dev libjansson-dev libxml2-dev libssl-dev libpq-dev
    libcurl4-openssl-dev libarchive-dev libinih-dev libsystemd-dev libcmocka-dev
    postgresql-15 postgresql-client-15
    dpkg-dev file systemd iproute2
    python3-psycopg python3-fastapi python3-asyncpg python3-uvicorn
    python3-cryptography python3-httpx
    python3-pymysql mariadb-server-core mariadb-client-core)
WANTED=(libclang-rt-14-dev shellcheck)

# clang's runtime is what the sanitizers and libFuzzer are; without it gcc's
# sanitizers do, and nothing is fuzzed.
clang_runtime() {
    compgen -G "$(clang -print-resource-dir)/lib/*/libclang_rt.fuzzer*" >/dev/null
}

preset() {
    local more=()
    if [[ $1 == asan ]]; then
        # The preset is clang's, if it has its runtime; then it is the tree of the
        # fuzz targets too, and one build less.
        clang_runtime && more=(-DPN_FUZZ=ON) || more=(-DCMAKE_C_COMPILER=gcc)
    fi
    cmake --preset "$1" "${more[@]}" >/dev/null
}

ctests() { # preset labels [labels left out]
    # Most wait more than they compute.
    ctest --preset "$1" -L "^($2)$" ${3:+-LE "^($3)$"} -j "$((jobs + 1))" --no-tests=error
}

stage_lint() { preset release && bash tests/lint/run.sh build/release; }
# The programs, and what shows that they judge right. Other tests are built where
# they run, with a sanitizer.
stage_build() {
    local folders=(src/*/CMakeLists.txt systemd/CMakeLists.txt tests/golden/CMakeLists.txt)
    preset release && cmake --build --preset release -j "$jobs" \
        --target "${folders[@]/%CMakeLists.txt/all}" -- --quiet
}
stage_golden() { ctests release 'golden|shared'; }
stage_clang() { preset asan && cmake --build --preset asan -j "$jobs" -- --quiet; }
build_all() { preset release && cmake --build --preset release -j "$jobs" -- --quiet; }
stage_unit() { build_all && ctests release 'unit|golden|fuzz'; }
stage_integration() { build_all && ctests release integration; }
# paynotifyctl has no threads and its C is unit tested under the sanitizers; what
# these scripts cost is processes, each dear with them.
stage_commands() { ctests release 'cmd|readme'; }
stage_pull() { bash tests/pull/run.sh build/release; }
stage_guard() {
    # Two clusters, and tests that wait more than they compute.
    local gateway status=0
    bash tests/gateway/run.sh build/release >"$logs/gateway.log" 2>&1 &
    gateway=$!
    bash tests/guard/run.sh build/release || status=1
    wait "$gateway" || status=1
    cat "$logs/gateway.log"
    return "$status"
}
stage_examples() { bash tests/examples/run.sh build/release; }
stage_e2e() {
    # Two clusters, and tests that wait more than they compute.
    local proxy status=0
    bash tests/proxy/run.sh build/release >"$logs/proxy.log" 2>&1 &
    proxy=$!
    bash tests/e2e/run.sh build/release || status=1
    wait "$proxy" || status=1
    cat "$logs/proxy.log"
    return "$status"
}
stage_crash() { PN_PG_CONF='' PN_PG_TMP=/tmp bash tests/fault/run.sh build/release; }
# Each test with one of the sanitizers: where threads meet with TSan, all else with
# ASan and UBSan. `ctest --preset asan` and `--preset tsan` have all of them.
stage_asan() {
    # The seeds of the fuzz targets are read by the fuzzer, if there is one.
    local left='readme|cmd|threads|shared'
    ! clang_runtime || left+='|fuzz'
    stage_clang >/dev/null &&
        ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1 \
            ctests asan 'unit|golden|fuzz|integration' "$left"
}
stage_tsan() {
    # The store's writers, the server, the pipeline, reload, pushes.
    preset tsan && cmake --build build/tsan -j "$jobs" --target threads -- --quiet &&
        TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1 ctests tsan threads
}
stage_fuzz() {
    clang_runtime || { echo "no libFuzzer here (libclang-rt-14-dev): left out"; return 0; }
    stage_clang >/dev/null && bash tests/lib/fuzz.sh build/asan "$FUZZ_SECONDS" "$jobs"
}
stage_package() { bash tests/package/run.sh build/release; }
stage_quickstart() { PN_PG_CONF='' PN_PG_TMP=/tmp bash tests/lib/quickstart.sh; }

# passed and failed of a log: what ctest says (its tests may count too), else
# node --test or a line of our own; a stage that counts nothing is one test.
count() {
    awk -v status="$2" '
        /% tests passed, [0-9]+ tests failed out of [0-9]+/ {
            failed += $4; passed += $NF - $4; ctest = 1 }
        /^# (pass|fail) [0-9]+$/ { seen = 1; n[$2] += $3 }
        /^[0-9]+ passed, [0-9]+ failed$/ { seen = 1; n["pass"] += $1; n["fail"] += $3 }
        END {
            if (!ctest && seen) { passed = n["pass"]; failed = n["fail"] }
            if (!ctest && !seen && status == 0) passed = 1
            if (status != 0 && failed == 0) failed++
            print passed + 0, failed + 0
        }' "$1"
}

child='' watchdog=''
seeded=
finish() {
    [ -z "$watchdog" ] || {
        kill -TERM -- "-$watchdog" 2>/dev/null
        wait "$watchdog" 2>/dev/null
    }
    watchdog=
    [ -z "$child" ] || {
        kill -TERM -- "-$child" 2>/dev/null
        for _ in {1..50}; do
            kill -0 -- "-$child" 2>/dev/null || break
            sleep 0.1
        done
        kill -KILL -- "-$child" 2>/dev/null
    }
    child=
}
finish_all() { finish; [ -z "$seeded" ] || rm -rf "$PN_PG_SEED"; }
trap finish_all EXIT
trap 'exit 130' INT TERM HUP

# NAME [follow]: follow shows the output while it comes.
run_stage() {
    local name=$1 t0=$SECONDS status=0 tail='' result
    set -m # a process group of its own
    (
        set +m
        trap 'exit 143' TERM
        "stage_$name"
    ) >"$logs/$name.log" 2>&1 &
    child=$!
    (
        set +m
        sleep "$STAGE_SECONDS_MAX"
        kill -TERM -- "-$child"
    ) >/dev/null 2>&1 &
    watchdog=$!
    set +m
    [ -z "${2:-}" ] || {
        echo "== $name"
        tail -n +1 -f --pid="$child" "$logs/$name.log" &
        tail=$!
    }
    wait "$child" || status=$?
    [ -z "$tail" ] || wait "$tail" 2>/dev/null
    finish
    read -r p f < <(count "$logs/$name.log" "$status")
    result=$(printf '== %-12s %-6s %4d s   %d passed, %d failed' "$name" \
        "$([ "$status" = 0 ] && echo ok || echo FAILED)" $((SECONDS - t0)) "$p" "$f")
    echo "$result" >>"$logs/stages"
    { # in one write, or two lanes would mix
        [ -n "$tail" ] || { echo "== $name"; cat "$logs/$name.log"; }
        printf '%s\n\n' "$result"
    } >"$logs/$name.shown"
    cat "$logs/$name.shown"
    rm -f "$logs/$name.shown"
}

lane() { # STAGE...: one after the other, beside other lanes
    trap finish EXIT
    trap 'exit 130' INT TERM HUP
    for name; do run_stage "$name"; done
}

run_all() {
    local lanes=()
    for name in "${FIRST[@]}"; do run_stage "$name" follow; done
    lane "${WAITING[@]}" &
    lanes+=($!)
    lane "${COMPUTING[@]}" &
    lanes+=($!)
    trap 'kill "${lanes[@]}" 2>/dev/null; wait; finish_all' EXIT
    wait "${lanes[@]}"
    trap finish_all EXIT
}

main() {
    local name begin=$SECONDS passed failed
    [ "${1:-}" != --list ] || { printf '%s\n' "${STAGES[@]}" "${MORE[@]}"; exit 0; }
    for name; do
        [[ " ${STAGES[*]} ${MORE[*]} " == *" $name "* ]] ||
            { echo "no stage $name; there are: ${STAGES[*]} ${MORE[*]}" >&2; exit 2; }
    done
    mkdir -p "$logs"
    : >"$logs/stages"
    packages_need "${NEEDED[@]}" || exit 1
    packages_want "${WANTED[@]}"
    packages_node || exit 1 # the golden cases, examples, e2e, crash
    pg_seed || exit 1
    seeded=yes
    if [ $# = 0 ]; then
        run_all
        set -- "${STAGES[@]}"
    else
        for name; do run_stage "$name" follow; done
    fi
    echo "-------- $((SECONDS - begin)) s"
    cat "$logs/stages"
    for name; do
        grep -hE '% tests passed, |^Total Test time|^The following tests FAILED|^	 *[0-9]+ - .*\(' \
            "$logs/$name.log"
    done
    read -r passed failed < <(awk '/^== / { p += $(NF-3); f += $(NF-1) }
        END { print p + 0, f + 0 }' "$logs/stages")
    echo "$passed passed, $failed failed"
    # A stage that left no line did not end.
    [ "$failed" = 0 ] && [ "$(wc -l <"$logs/stages")" = $# ]
}
main "$@"
