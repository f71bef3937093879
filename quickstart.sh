#!/bin/bash
# From a fresh checkout to a receiver that has recorded a payment, on Debian 12.
#
#   ./quickstart.sh          install what is missing, build, start, send samples
#   ./quickstart.sh --stop   stop the receiver and its PostgreSQL
#
# As root or as an ordinary user. Everything it makes is in .local/ (never
# committed) and build/release/; run again it reuses both. The PostgreSQL cluster
# is private: a unix socket, no port. PostgreSQL refuses to run as root, so for
# root a system user runs it; and a socket's name has at most 107 bytes, and an
# unprivileged server cannot enter a checkout under /root: then the cluster is in
# a short folder below /var/tmp, which .local/pg links to.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
. tests/lib/packages.sh
unset "${!PG@}" PAGER # another database's settings must not leak in
export LC_ALL=C.UTF-8

top=$(pwd -P)
here=$top/.local
conf=.local/paynotifyd.conf
log=.local/paynotifyd.log
pidfile=.local/paynotifyd.pid
bin=build/release
SOCKET_BYTES_MAX=107
READY_SECONDS_MAX=30

NEEDED=(gcc libc6-dev cmake ninja-build pkg-config openssl util-linux procps
    libmicrohttpd-dev libjansson-dev libxml2-dev libssl-dev libpq-dev
    libcurl4-openssl-dev libarchive-dev libinih-dev libsystemd-dev libcmocka-dev postgresql)

say() { printf '%s\n' "$*"; }
step() { printf '\n== %s\n' "$*"; }
die() {
    printf '\nquickstart.sh: %s\n' "$*" >&2
    exit 1
}
# Shows a command, then runs it.
run() {
    printf '\n$ %s\n' "$*"
    "$@"
}

# --- packages and build ------------------------------------------------------

pg_bin() {
    local d
    d=$(printf '%s\n' /usr/lib/postgresql/*/bin/initdb | sort -V | tail -1)
    [ -x "$d" ] || d=$(command -v initdb) || return 1
    dirname "$d"
}

install_packages() {
    local needed=("${NEEDED[@]}") missing
    # A server from elsewhere will do.
    [ -z "$(pg_bin)" ] || unset 'needed[-1]'
    if command -v dpkg-query >/dev/null; then
        mapfile -t missing < <(packages_missing "${needed[@]}")
        if [ ${#missing[@]} -gt 0 ] && [ "$(id -u)" != 0 ] && [ -t 0 ] &&
            command -v sudo >/dev/null && ! sudo -n true 2>/dev/null; then
            say "missing packages: ${missing[*]}"
            say "sudo asks for your password to install them"
            sudo -v
        fi
        packages_need "${needed[@]}" ||
            die "run the command above as root, then ./quickstart.sh again"
    fi
    [ -n "$(pg_bin)" ] || die "no PostgreSQL server found: install postgresql (15 or later)"
}

build() {
    local output=.local/build.log
    [ -d build/release ] && [ ! -w build/release ] &&
        die "build/release belongs to $(stat -c %U build/release): remove it, or run as that user"
    [ -w "${HOME:-/}" ] || export CCACHE_DIR=$top/build/ccache
    {
        { [ -f build/release/build.ninja ] || cmake --preset release; } &&
            cmake --build --preset release --target paynotifyd paynotifyctl
    } >"$output" 2>&1 || {
        tail -30 "$output" >&2
        die "the build failed; all of its output is in $output"
    }
    say "built $bin/paynotifyd and $bin/paynotifyctl"
}

# --- PostgreSQL --------------------------------------------------------------

# Who runs the server: root may not.
pg_user() {
    if [ -e "$here/pg/data/PG_VERSION" ]; then
        stat -c %U "$here/pg/data"
    elif [ "$(id -u)" != 0 ]; then
        id -un
    else
        id postgres >/dev/null 2>&1 && { echo postgres; return; }
        id paynotify-pg >/dev/null 2>&1 ||
            useradd --system --no-create-home paynotify-pg || return 1
        echo paynotify-pg
    fi
}

pg_as() {
    if [ "$(id -u)" = 0 ]; then
        (cd / && runuser -u "$(pg_user)" -- "$@")
    else
        (cd / && "$@")
    fi
}

# Whether the cluster can be in .local/pg itself.
pg_fits_here() {
    local name=$here/pg/.s.PGSQL.5432
    [ ${#name} -le $SOCKET_BYTES_MAX ] &&
        [[ $here =~ ^[A-Za-z0-9/._-]+$ ]] &&
        pg_as test -x "$here"
}

pg_make() {
    local user folder
    user=$(pg_user) || die "could not make a system user for PostgreSQL"
    if [ -L .local/pg ]; then # its folder is gone: begin anew
        rm -f .local/pg
    fi
    if [ ! -e .local/pg ]; then
        if pg_fits_here; then
            mkdir .local/pg
        else
            folder=$(mktemp -d /var/tmp/paynotifyd.XXXXXX) || die "no room in /var/tmp"
            ln -s "$folder" .local/pg
        fi
    fi
    chmod 755 .local/pg/
    [ "$(id -u)" != 0 ] || chown "$user" .local/pg/
    folder=$(realpath .local/pg)
    pg_as "$(pg_bin)/initdb" -D "$folder/data" -U paynotify -A trust -E UTF8 \
        --locale=C.UTF-8 --no-instructions >.local/initdb.log 2>&1 || {
        tail -20 .local/initdb.log >&2
        die "could not make a PostgreSQL cluster in $folder"
    }
    # Nobody but this user (and root) may connect.
    pg_as tee -a "$folder/data/postgresql.conf" >/dev/null <<CONF
listen_addresses = ''
unix_socket_directories = '$folder'
unix_socket_permissions = 0700
port = 5432
CONF
    say "made a private PostgreSQL cluster in $folder"
}

pg_running() {
    [ -e .local/pg/data/PG_VERSION ] &&
        pg_as "$(pg_bin)/pg_ctl" -D "$(realpath .local/pg)/data" status >/dev/null 2>&1
}

pg_start() {
    local folder
    [ -e .local/pg/data/PG_VERSION ] || pg_make
    folder=$(realpath .local/pg)
    if pg_running; then
        say "PostgreSQL runs already, socket in $folder"
        return
    fi
    pg_as "$(pg_bin)/pg_ctl" -D "$folder/data" -l "$folder/server.log" -w -t 60 start \
        >/dev/null 9>&- || {
        tail -20 "$folder/server.log" >&2
        die "PostgreSQL did not start"
    }
    say "started PostgreSQL, socket in $folder"
    # The database is made once; an interrupted first run is made good here.
    pg_as "$(pg_bin)/psql" -qXAt -h "$folder" -U paynotify -d postgres -c \
        "SELECT 1 FROM pg_database WHERE datname = 'paynotify'" | grep -q 1 ||
        pg_as "$(pg_bin)/createdb" -h "$folder" -U paynotify paynotify ||
        die "could not make the database"
    # The role is called like the schema: by default a table that an application
    # makes here without naming a schema would land among the receiver's.
    pg_as "$(pg_bin)/psql" -qX -h "$folder" -U paynotify -d paynotify -c \
        "ALTER ROLE paynotify SET search_path TO public" >/dev/null ||
        die "could not set the search path"
}

# --- keys and configuration --------------------------------------------------

key_pair() { # name
    local private=.local/keys/$1_private.pem public=.local/keys/$1_public.pem
    [ -s "$private" ] ||
        openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out "$private" \
            2>/dev/null || die "openssl could not make a key"
    [ "$public" -nt "$private" ] ||
        openssl pkey -in "$private" -pubout -out "$public" ||
        die "openssl could not write a public key"
}

make_keys() {
    local name mask
    mask=$(umask)
    umask 077
    mkdir -p .local/keys
    key_pair alipay
    key_pair wechat
    for name in api_v3 api_v2; do
        [ -s ".local/keys/wechat_$name.key" ] ||
            openssl rand -hex 16 >".local/keys/wechat_$name.key" # 32 characters
    done
    umask "$mask"
}

port_is_taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# Sets server and admin: 8600 and 8601, or the first pair that is free.
choose_ports() {
    for ((server = 8600; server < 8900; server += 10)); do
        admin=$((server + 1))
        port_is_taken "$server" || port_is_taken "$admin" || return 0
    done
    die "no two free ports from 8600 on"
}

port_of() { # section
    sed -n "/^\[$1\]/,/^\[/s/^listen = 127\.0\.0\.1:\([0-9]*\).*/\1/p" "$conf" | head -1
}

make_conf() {
    local server=$1 admin=$2
    cat >"$conf" <<CONF
; Made by quickstart.sh: a receiver to try, with test accounts and test keys.
; src/conf/paynotifyd.conf.sample shows every option. Remove this file, and the
; next ./quickstart.sh makes it anew.
[server]
listen = 127.0.0.1:$server

[admin]
listen = 127.0.0.1:$admin

[database]
dsn = host=$(realpath .local/pg) user=paynotify dbname=paynotify

[alipay shop1]
app_id = 2021000000000001
seller_id = 2088000000000001
public_key = keys/alipay_public.pem
test = yes
test_private_key = keys/alipay_private.pem

[wechat shop1]
mchid = 1900000001
appid = wx0000000000000001
api_v3_key_file = keys/wechat_api_v3.key
public_key = PUB_KEY_ID_0000000000000000000001:keys/wechat_public.pem
api_v2_key_file = keys/wechat_api_v2.key
test = yes
test_private_key = keys/wechat_private.pem
CONF
}

configure() {
    local server admin
    make_keys
    if [ ! -s "$conf" ] || ! grep -qF "host=$(realpath .local/pg) " "$conf"; then
        choose_ports
        make_conf "$server" "$admin"
        say "wrote $conf: notifications on port $server, health and metrics on port $admin"
    elif ! daemon_runs; then
        # Somebody else may have taken a port since.
        server=$(port_of server) admin=$(port_of admin)
        if port_is_taken "$server" || port_is_taken "$admin"; then
            choose_ports
            sed -i -e "/^\[server\]/,/^\[/s/^listen = 127.*/listen = 127.0.0.1:$server/" \
                -e "/^\[admin\]/,/^\[/s/^listen = 127.*/listen = 127.0.0.1:$admin/" "$conf"
            say "a port was taken: now $server, and $admin for health and metrics"
        fi
    fi
    "$bin/paynotifyctl" config check -c "$conf" || die "mend $conf, or remove it to have it made anew"
}

# --- the receiver ------------------------------------------------------------

daemon_runs() {
    local pid exe
    pid=$(cat "$pidfile" 2>/dev/null) && [ -n "$pid" ] || return 1
    exe=$(readlink "/proc/$pid/exe" 2>/dev/null) || return 1
    [[ $exe == "$top/$bin/paynotifyd" || $exe == "$top/$bin/paynotifyd (deleted)" ]]
}

daemon_stop() {
    local pid i
    daemon_runs || { rm -f "$pidfile"; return 1; }
    pid=$(cat "$pidfile")
    kill -TERM "$pid"
    for ((i = 0; i < 300; i++)); do
        [ -e "/proc/$pid" ] || { rm -f "$pidfile"; return 0; }
        sleep 0.1
    done
    die "the receiver (process $pid) does not stop"
}

ready() { # 200 from /readyz, without curl
    local line=
    exec 3<>"/dev/tcp/127.0.0.1/$(port_of admin)" || return 1
    printf 'GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3
    read -r -t 5 line <&3
    exec 3>&-
    [[ $line == "HTTP/1.1 200"* ]]
}

daemon_start() {
    local i
    # A new build, or a new configuration, takes a new process.
    if daemon_runs && { [[ $(readlink "/proc/$(cat "$pidfile")/exe") == *"(deleted)" ]] ||
        [ "$conf" -nt "$pidfile" ]; }; then
        daemon_stop && say "stopped the receiver, to start it anew"
    fi
    if daemon_runs; then
        say "the receiver runs already, process $(cat "$pidfile")"
    else
        setsid "$bin/paynotifyd" -c "$conf" </dev/null >>"$log" 2>&1 9>&- &
        echo $! >"$pidfile"
        say "started the receiver, process $(cat "$pidfile"), log in $log"
    fi
    for ((i = 0; i < READY_SECONDS_MAX * 10; i++)); do
        ready 2>/dev/null && { say "it is ready"; return; }
        daemon_runs || break
        sleep 0.1
    done
    tail -20 "$log" >&2
    die "the receiver is not ready; its log is $log"
}

# --- the tour ----------------------------------------------------------------

tour() {
    local order status started i
    order=QS$(date +%Y%m%d%H%M%S%3N)
    started=$(date -u +%Y-%m-%dT%H:%M:%SZ)
    local ctl=$bin/paynotifyctl

    step "a signed Alipay payment, delivered twice: the same success, one event"
    run "$ctl" trigger -c "$conf" --account alipay/shop1 --out-trade-no "A$order" \
        --duplicates 1 payment.succeeded || die "the Alipay sample was not accepted; see $log"
    step "a signed WeChat Pay payment, delivered twice"
    run "$ctl" trigger -c "$conf" --account wechat/shop1 --out-trade-no "W$order" \
        --duplicates 1 payment.succeeded || die "the WeChat Pay sample was not accepted; see $log"
    step "a forged one: its amount was changed after it was signed, so it is refused"
    run "$ctl" trigger -c "$conf" --account alipay/shop1 --out-trade-no "F$order" \
        --oddity tampered payment.succeeded
    status=$?
    [ $status = 1 ] || die "the forged notification was not refused (exit $status)"
    step "what was recorded: two events"
    run "$ctl" events list -c "$conf" --since "$started" || die "the events cannot be read"
    [ "$("$ctl" events list -c "$conf" --since "$started" --json |
        grep -cE "\"out_trade_no\": ?\"[AW]$order\"")" = 2 ] ||
        die "these should be exactly two events, A$order and W$order"
    step "every request has a receipt, the refused one too"
    # Receipts of refused requests are written behind the replies.
    for ((i = 0; i < 50; i++)); do
        "$ctl" receipts list -c "$conf" --since "$started" --verdict bad_signature --json |
            grep -q . && break
        sleep 0.1
    done
    run "$ctl" receipts list -c "$conf" --since "$started" --limit 10 ||
        die "the receipts cannot be read"
}

farewell() {
    local server admin folder
    server=$(port_of server) admin=$(port_of admin) folder=$(realpath .local/pg)
    cat <<TEXT

== What now

Running: the receiver (process $(cat "$pidfile"), log $log)
  POST http://127.0.0.1:$server/notify/alipay/shop1
  POST http://127.0.0.1:$server/notify/wechat/shop1
  http://127.0.0.1:$admin/readyz and /metrics
and its PostgreSQL (socket and data in $folder).
Stop both:         ./quickstart.sh --stop
Remove everything: ./quickstart.sh --stop && rm -rf $folder .local

More to try:
  $bin/paynotifyctl trigger -c $conf --account wechat/shop1 --list
  $bin/paynotifyctl trigger -c $conf --account wechat/shop1 --retries 3 refund.succeeded
  $bin/paynotifyctl events tail -c $conf --follow
  psql "host=$folder user=paynotify dbname=paynotify" -c 'select * from paynotify.events'
Take the events as an application does (each comes again in a minute unless it is
acked; README.md has whole loops, and pushing by HTTP). Put a token that claim
shows in the place of TOKEN:
  psql "host=$folder user=paynotify dbname=paynotify"
  => select paynotify.register_consumer('shop');
  => select token, type, out_trade_no, amount from paynotify.claim('shop', 10, '1 minute');
  => select paynotify.ack('TOKEN');
  $bin/paynotifyctl deliveries list -c $conf
For your own shop: copy src/conf/paynotifyd.conf.sample, put in your app_id or
mchid and keys, and give the provider https://YOUR-DOMAIN/notify/alipay/shop1
(or wechat/shop1) as notify_url, by way of your TLS proxy.

== 接下来

正在运行：通知接收程序（进程 $(cat "$pidfile")，日志 $log）
  POST http://127.0.0.1:$server/notify/alipay/shop1
  POST http://127.0.0.1:$server/notify/wechat/shop1
  http://127.0.0.1:$admin/readyz 和 /metrics
以及专用的 PostgreSQL（套接字和数据在 $folder）。
停止：     ./quickstart.sh --stop
全部删除： ./quickstart.sh --stop && rm -rf $folder .local

还可以试试：
  $bin/paynotifyctl trigger -c $conf --account wechat/shop1 --list          列出可模拟的通知
  $bin/paynotifyctl trigger -c $conf --account wechat/shop1 --retries 3 refund.succeeded
  $bin/paynotifyctl events tail -c $conf --follow                           实时查看入账事件
像应用那样领取事件（不 ack 的一分钟后会再来；完整的循环和 HTTP 推送见 README.zh-CN.md）。
请把 TOKEN 换成 claim 显示的 token：
  psql "host=$folder user=paynotify dbname=paynotify"
  => select paynotify.register_consumer('shop');
  => select token, type, out_trade_no, amount from paynotify.claim('shop', 10, '1 minute');
  => select paynotify.ack('TOKEN');
  $bin/paynotifyctl deliveries list -c $conf                               查看尚未交出的事件
正式使用：复制 src/conf/paynotifyd.conf.sample，填入您的 app_id 或商户号以及密钥，
并把 https://您的域名/notify/alipay/shop1（或 wechat/shop1）设为 notify_url，
前面由您的 TLS 反向代理转发。
TEXT
}

# --- what is asked -----------------------------------------------------------

stop_everything() {
    [ -d .local ] || { say "nothing runs: there is no .local/"; return; }
    if daemon_stop; then say "stopped the receiver"; else say "the receiver did not run"; fi
    if pg_running; then
        pg_as "$(pg_bin)/pg_ctl" -D "$(realpath .local/pg)/data" -m fast -w stop >/dev/null ||
            die "PostgreSQL does not stop"
        say "stopped PostgreSQL"
    else
        say "PostgreSQL did not run"
    fi
    say "kept: .local/$([ -L .local/pg ] && echo " and $(readlink .local/pg)") (keys, data, logs); ./quickstart.sh starts it again"
}

claim_local() {
    mkdir -p .local
    [ -O .local ] ||
        die ".local/ belongs to $(stat -c %U .local 2>/dev/null || echo somebody else): run as that user, or remove it"
    exec 9>.local/lock
    flock -w 5 9 || die "another quickstart.sh is at work here"
}

case ${1:-} in
'') ;;
--stop)
    [ ! -d .local ] || claim_local
    stop_everything
    exit
    ;;
-h | --help)
    sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
    exit
    ;;
*)
    printf 'quickstart.sh: unknown option %s; there are --stop and --help\n' "$1" >&2
    exit 2
    ;;
esac

[ -w . ] || die "this folder cannot be written to: copy the checkout to one of yours"
claim_local
step "packages"
install_packages && say "all there"
step "build (the first time takes a minute or two)"
build
step "PostgreSQL"
pg_start
step "configuration and schema"
configure
"$bin/paynotifyctl" db migrate -c "$conf" || die "the schema could not be made"
step "receiver"
daemon_start
tour
farewell
