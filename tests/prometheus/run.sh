#!/bin/bash
# What Prometheus makes of the alert rules: run.sh BUILD
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=tests/lib/packages.sh
. ../lib/packages.sh
# shellcheck source=tests/lib/promtool.sh
. ../lib/promtool.sh
promtool_need "$build"
"$PN_PROMTOOL" check rules ../../systemd/prometheus/paynotifyd.rules.yml
"$PN_PROMTOOL" test rules rules_test.yml
python3 -m json.tool ../../systemd/prometheus/grafana.json >/dev/null
