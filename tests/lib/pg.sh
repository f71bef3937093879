# Sourced: a private PostgreSQL cluster for tests, on a unix socket in a short
# folder (a socket name holds 107 bytes, and an unprivileged server must not
# have to pass through /root). PostgreSQL refuses to run as root: then the
# server runs as PN_PG_USER, made when missing.
#
#   pg_start            exports PGHOST PGUSER PGDATABASE PN_PG_DIR PN_DSN
#   pg_stop             stops it and removes the folder
#   pg_restart [mode]   immediate (as a crash) or fast
#   pg_kill             kill -9 of the whole server; pg_resume starts it again
#   pg_new_database     an empty database; sets PGDATABASE and PN_DSN
#
# PN_PG_CONF holds further lines for postgresql.conf. fsync stays on. autovacuum is
# off: the janitor fails at once behind an ANALYZE of the keys and comes again, but
# a test that calls its function would fail with it, at random.
# PN_PG_SEED names a cluster that pg_seed has made: new ones are copies of it,
# which takes a tenth of the time.

PN_PG_USER=${PN_PG_USER:-paynotify-pg}

pg_bin() {
    for d in $(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -rV); do
        [ -x "$d/initdb" ] && { echo "$d"; return; }
    done
    dirname "$(command -v initdb)"
}

pg_as() {
    if [ "$(id -u)" = 0 ]; then
        runuser -u "$PN_PG_USER" -- "$@"
    else
        "$@"
    fi
}

pg_ctl_() { (cd / && pg_as "$PN_PG_BIN/pg_ctl" -D "$PN_PG_DIR/data" "$@"); }

pg_resume() {
    pg_ctl_ -l "$PN_PG_DIR/server.log" -w -t 60 start >/dev/null ||
        { tail -20 "$PN_PG_DIR/server.log" >&2; return 1; }
}

# Tests that run side by side may all find it missing: one of them makes it.
pg_make_user() {
    for _ in {1..20}; do
        id "$PN_PG_USER" >/dev/null 2>&1 && return 0
        useradd --system --no-create-home "$PN_PG_USER" 2>/dev/null || sleep 0.2
    done
    echo "cannot make the user $PN_PG_USER" >&2
    return 1
}

# A folder of the server's user; sets PN_PG_DIR.
pg_folder() {
    PN_PG_BIN=$(pg_bin)
    PN_PG_DIR=$(mktemp -d "${PN_PG_TMP:-/tmp}/pn.XXXXXX")
    if [ "$(id -u)" = 0 ]; then
        pg_make_user || return 1
        chown "$PN_PG_USER" "$PN_PG_DIR"
    fi
    chmod 755 "$PN_PG_DIR"
}

pg_initdb() {
    (cd / && pg_as "$PN_PG_BIN/initdb" -D "$PN_PG_DIR/data" -U paynotify \
        -A trust -E UTF8 --locale=C.UTF-8 --no-instructions \
        >"$PN_PG_DIR/initdb.log" 2>&1) || { cat "$PN_PG_DIR/initdb.log" >&2; return 1; }
}

# Exports PN_PG_SEED; whoever calls it removes the folder.
pg_seed() {
    pg_folder && pg_initdb || return 1
    export PN_PG_SEED=$PN_PG_DIR
    PN_PG_DIR=
}

pg_start() {
    pg_folder || return 1
    if [ -n "${PN_PG_SEED:-}" ]; then
        (cd / && pg_as cp -a "$PN_PG_SEED/data" "$PN_PG_DIR/data")
    else
        pg_initdb
    fi || return 1
    cat >>"$PN_PG_DIR/data/postgresql.conf" <<CONF
listen_addresses = ''
unix_socket_directories = '$PN_PG_DIR'
max_connections = 100
fsync = on
synchronous_commit = on
shared_buffers = 256MB
max_wal_size = 4GB
autovacuum = off
log_min_messages = warning
${PN_PG_CONF:-}
CONF
    unset PGPASSWORD PGSERVICE PGSSLMODE PGPORT
    export PN_PG_BIN PN_PG_DIR PN_PG_USER PGHOST=$PN_PG_DIR PGUSER=paynotify
    export PATH="$PN_PG_BIN:$PATH"
    pg_resume || return 1
    pg_new_database
}

pg_new_database() {
    PGDATABASE=pn$(date +%s%N)
    export PGDATABASE
    psql -qX -d postgres -c "CREATE DATABASE \"$PGDATABASE\""
    export PN_DSN="host=$PN_PG_DIR user=paynotify dbname=$PGDATABASE"
}

pg_restart() { pg_ctl_ -m "${1:-fast}" -w stop >/dev/null; pg_resume; }

pg_kill() {
    local pid all
    pid=$(head -1 "$PN_PG_DIR/data/postmaster.pid")
    # The postmaster and its children: a machine that loses power. Stopped first,
    # since a child that it starts meanwhile would live on beside the next one.
    kill -STOP "$pid"
    until [[ $(ps -o stat= -p "$pid") == T* ]]; do sleep 0.01; done
    mapfile -t all < <(echo "$pid"; pgrep -P "$pid")
    kill -9 "${all[@]}" 2>/dev/null || true
    # Not until they are reaped: how soon that is is init's affair.
    while ps -o stat= -p "${all[*]}" | grep -qv '^Z'; do sleep 0.02; done
    rm -f "$PN_PG_DIR/data/postmaster.pid" "$PN_PG_DIR"/.s.PGSQL.*.lock
}

pg_stop() {
    [ -n "${PN_PG_DIR:-}" ] || return 0
    pg_ctl_ -m immediate -w stop >/dev/null 2>&1 || true
    rm -rf "$PN_PG_DIR"
    PN_PG_DIR=
}
