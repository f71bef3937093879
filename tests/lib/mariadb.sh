# Sourced: a private MariaDB for tests, on a unix socket in a short folder. Needs
# only mariadb-server-core and mariadb-client-core, which start nothing.
#
#   mariadb_start       exports MYSQL_SOCKET; the user root has no password
#   mariadb_stop        stops it and removes the folder

mariadb_start() {
    local program
    program=$(PATH=$PATH:/usr/sbin command -v mariadbd) ||
        { echo "mariadb: there is no mariadbd (mariadb-server-core, mariadb-client-core)" >&2; return 1; }
    PN_MARIADB_DIR=$(mktemp -d "${PN_PG_TMP:-/tmp}/pn-my.XXXXXX")
    local options=(--no-defaults "--datadir=$PN_MARIADB_DIR/data" "--user=$(id -un)")
    mariadb-install-db "${options[@]}" --auth-root-authentication-method=normal \
        --skip-test-db --skip-name-resolve >"$PN_MARIADB_DIR/install.log" 2>&1 ||
        { tail -20 "$PN_MARIADB_DIR/install.log" >&2; return 1; }
    export MYSQL_SOCKET=$PN_MARIADB_DIR/sock
    "$program" "${options[@]}" --socket="$MYSQL_SOCKET" --skip-networking \
        --pid-file="$PN_MARIADB_DIR/pid" --innodb-buffer-pool-size=32M \
        --innodb-log-file-size=16M >"$PN_MARIADB_DIR/server.log" 2>&1 </dev/null &
    PN_MARIADB_PID=$!
    for _ in {1..600}; do
        [ ! -S "$MYSQL_SOCKET" ] || return 0
        kill -0 "$PN_MARIADB_PID" 2>/dev/null || break
        sleep 0.05
    done
    tail -20 "$PN_MARIADB_DIR/server.log" >&2
    return 1
}

mariadb_stop() {
    [ -n "${PN_MARIADB_DIR:-}" ] || return 0
    if [ -n "${PN_MARIADB_PID:-}" ]; then
        kill -9 "$PN_MARIADB_PID" 2>/dev/null || true
        wait "$PN_MARIADB_PID" 2>/dev/null || true # its status: killed
    fi
    rm -rf "$PN_MARIADB_DIR"
    PN_MARIADB_DIR=
}
