#!/bin/bash
# Lint, the quick checks first: rules and their self-test, clang-format,
# ShellCheck, clang-tidy. Runs all, exits 1 when one was red.
#
#   tests/lint/run.sh [BUILD_DIR]     BUILD_DIR (default build/release) is
#                                     configured when it is not
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
build=${1:-build/release}
bad=0
here() { git -c safe.directory='*' ls-files -co --exclude-standard "$@" 2>/dev/null; }
first() { for t; do command -v "$t" && return; done; return 1; }

python3 -B tests/lint/selftest.py || bad=1
python3 -B tests/lint/lint.py || bad=1

format=$(first clang-format-14 clang-format) || { echo "lint: no clang-format" >&2; exit 1; }
mapfile -t c < <(here 'src/*.[ch]' 'include/*.[ch]' 'tests/*.[ch]')
[ ${#c[@]} -gt 0 ] || mapfile -t c < <(find src include tests -name '*.[ch]' -not -path '*/node_modules/*')
wrong=$("$format" --dry-run -Werror "${c[@]}" 2>&1 | grep -o '^[^ :]*:[0-9]*' | sort -t: -u -k1,1)
[ -z "$wrong" ] || { echo "$wrong" | sed 's/$/: format: clang-format -i would change it/'; bad=1; }
echo "format: ${#c[@]} files"

if command -v shellcheck >/dev/null; then
    mapfile -t sh < <(here '*.sh' .ci/run)
    [ ${#sh[@]} -gt 0 ] || mapfile -t sh < <(find . -name '*.sh' -not -path '*/node_modules/*')
    shellcheck -x -S warning -e SC1090,SC1091 -s bash "${sh[@]}" &&
        echo "shellcheck: ${#sh[@]} files" || bad=1
else
    echo "shellcheck: not installed, left out"
fi

[ -f "$build/compile_commands.json" ] ||
    cmake --preset "$(basename "$build")" >/dev/null || exit 1
python3 -B tests/lint/tidy.py "$build" || bad=1
exit $bad
