#!/bin/bash
# The samples of nginx and Caddy, each by its own program, with TLS, before two
# daemons.
#   tests/proxy/run.sh [BUILD_DIR] [unittest arguments]
# PN_NGINX and PN_CADDY name the programs; without them Debian's packages are
# unpacked, not installed: their services would start.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PN_BUILD=$(cd "$here/../.." && cd "${1:-build/release}" && pwd)
[ $# = 0 ] || shift
. "$here/../lib/pg.sh"
. "$here/../lib/packages.sh"
. "$here/../lib/python.sh"

unpacked=$PN_BUILD/unpacked
export PN_NGINX=${PN_NGINX:-$(command -v nginx || echo "$unpacked/usr/sbin/nginx")}
export PN_CADDY=${PN_CADDY:-$(command -v caddy || echo "$unpacked/usr/bin/caddy")}
[ -x "$PN_NGINX" ] || packages_unpack "$unpacked" nginx
[ -x "$PN_CADDY" ] || packages_unpack "$unpacked" caddy

dir=$(mktemp -d "${TMPDIR:-/tmp}/pn-proxy.XXXXXX")
finish() { pg_stop; rm -rf "$dir"; }
trap finish EXIT
trap 'exit 130' INT TERM
export PN_PG_CONF="fsync = off"
pg_start
printf '[database]\ndsn = %s\n' "$PN_DSN" >"$dir/paynotifyd.conf"
chmod 600 "$dir/paynotifyd.conf"
"$PN_BUILD/paynotifyctl" db migrate -c "$dir/paynotifyd.conf" >/dev/null
cd "$here"
export PN_BUILD PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$here:$here/../integration/http
python3 "$here/../pull/runner.py" "$@"
