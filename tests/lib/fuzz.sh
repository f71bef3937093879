#!/bin/bash
# Runs every fuzz target for its share of a time, side by side.
#
#   fuzz.sh BUILD_DIR SECONDS JOBS
#
# SECONDS is the time in all, JOBS how many run at once. New inputs go into a
# folder that is thrown away; a crash leaves its input in build/logs.
set -uo pipefail
build=$1 seconds=$2 jobs=$3
mapfile -t targets < <(find "$build/tests" -maxdepth 1 -type f -executable -name 'fuzz_*' | sort)
[ ${#targets[@]} -gt 0 ] || { echo "fuzz: no targets in $build/tests" >&2; exit 1; }
share=$((seconds * jobs / ${#targets[@]}))
[ "$share" -gt 0 ] || share=1
work=$(mktemp -d "${TMPDIR:-/tmp}/pn-fuzz.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p build/logs
export work share build

one() {
    local name=${1##*/} seeds=()
    mkdir "$work/$name"
    for d in "$build/golden/fuzz/$name" "tests/fuzz/seeds/${name#fuzz_}"; do
        [ -d "$d" ] && seeds+=("$d")
    done
    if "$1" -max_total_time="$share" -timeout=5 -rss_limit_mb=1024 -print_final_stats=1 \
        -artifact_prefix="build/logs/$name-" "$work/$name" "${seeds[@]}" \
        >"$work/$name.log" 2>&1; then
        echo "$name: $(awk '/number_of_executed_units/ { print $2 }' "$work/$name.log") runs," \
            "${#seeds[@]} seed folders"
        touch "$work/$name.ok"
    else
        tail -40 "$work/$name.log"
        echo "$name: FAILED"
    fi
}
export -f one
printf '%s\0' "${targets[@]}" | xargs -0 -P "$jobs" -I{} bash -c 'one {}'
ok=$(find "$work" -name '*.ok' | wc -l)
echo "$ok passed, $((${#targets[@]} - ok)) failed"
[ "$ok" = ${#targets[@]} ]
