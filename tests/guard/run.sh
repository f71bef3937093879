#!/bin/bash
# The idempotency guard's functions against a real PostgreSQL: forced
# interleavings, crashes.   tests/guard/run.sh [BUILD_DIR] [unittest arguments]
# The server, the clock and the sessions are those of tests/pull.
set -euo pipefail
PN_TESTS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PN_TESTS
exec bash "$PN_TESTS/../pull/run.sh" "$@"
