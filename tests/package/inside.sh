#!/bin/bash
# What run.sh runs inside of the overlay, as root: WORK VERSION DSN. Each check is
# a sentence that would be wrong if it failed.
set -uo pipefail
work=$1 version=$2 dsn=$3
cd / || exit 1
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
etc=/etc/paynotifyd
conf=$etc/paynotifyd.conf
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
fails() { ! "$@"; }
says() { grep -qF -- "$1" "$work/said"; } # what dpkg printed last
same() { diff <(echo "$1") <(echo "$2"); }
# Without triggers: man-db would read all manuals of the machine each time.
package() {
    dpkg --no-triggers "$@" </dev/null >"$work/said" 2>&1 || { cat "$work/said"; return 1; }
}
as_user() { runuser -u paynotify -- "$@"; }
mode() { stat -c '%a %U:%G' "$1"; }
page() { curl -s -o "$work/page" -w '%{http_code}' "http://127.0.0.1:$1"; }
is_page() { same "$1" "$(page "$2")" && grep -qF "${3:-}" "$work/page"; }
running() { kill -0 "$1" 2>/dev/null; }
eventually() {
    for _ in {1..300}; do
        "$@" >/dev/null 2>&1 && return
        sleep 0.05
    done
    "$@"
}

# --- systemd, by hand ------------------------------------------------------------

daemon=
start() {
    as_user /usr/sbin/paynotifyd -c "$conf" >>"$work/daemon.log" 2>&1 &
    eventually pgrep -x -u paynotify paynotifyd
    daemon=$(pgrep -x -u paynotify paynotifyd)
    eventually is_page 200 8601/healthz
}
stop() { # and its exit status
    kill -TERM "$daemon"
    wait
}

# Writes down what maintainer scripts ask; what should be restarted, is.
stand_in() {
    mkdir -p /run/systemd/system
    cat >/usr/bin/deb-systemd-invoke <<'STUB'
#!/bin/sh
echo "invoke $*" >>/run/asked
[ "$1" != try-restart ] || ! old=$(pgrep -x -u paynotify paynotifyd) || {
    kill -TERM $old
    while [ -e "/proc/$old/exe" ]; do sleep 0.01; done
    runuser -u paynotify -- setsid /usr/sbin/paynotifyd -c /etc/paynotifyd/paynotifyd.conf \
        >/dev/null 2>&1 &
}
STUB
    printf '#!/bin/sh\necho "systemctl $*" >>/run/asked\n' >/bin/systemctl
    chmod 755 /usr/bin/deb-systemd-invoke /bin/systemctl
}

# --- a fresh installation ----------------------------------------------------------

ip link set lo up
check "the package installs" package -i "$work/paynotifyd.deb"
check "it says what to do next" says "paynotifyctl db migrate"
check "and that it has started nothing" says "not started yet"
check "nothing runs" fails pgrep -x paynotifyd
check "the user has no shell" grep -q '^paynotify:.*:/usr/sbin/nologin$' /etc/passwd
check "others cannot look into /etc/paynotifyd" same "750 root:paynotify" "$(mode $etc)"
check "nor read the configuration" same "640 root:paynotify" "$(mode $conf)"
check "the configuration as packaged is right" as_user paynotifyd --check
check "paynotifyctl says so too" as_user paynotifyctl config check
check "the man pages are there" ls /usr/share/man/man8/paynotifyd.8 \
    /usr/share/man/man1/paynotifyctl.1 /usr/share/man/man5/paynotifyd.conf.5
check "--version is the package's" same "paynotifyd $version" \
    "$(paynotifyd --version | head -1)"

start
check "it starts with it, without a database" running "$daemon"
check "it says that it is not ready, and why" is_page 503 8601/readyz \
    "connection to server"
check "it answers on the notifications' port" is_page 404 8600/notify/alipay/shop1
check "SIGTERM ends it well" stop

# --- set up -------------------------------------------------------------------------

openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out $etc/private.pem 2>/dev/null
openssl pkey -in $etc/private.pem -pubout -out $etc/public.pem
chgrp paynotify $etc/private.pem
chmod 640 $etc/private.pem
# As an operator does it: the section's lines lose their first `;`.
sed -i -e "s|^dsn = .*|dsn = $dsn|" -e '/^;\[alipay shop1\]/,/^;\[wechat/{
    s/^;\(\[alipay shop1\]\|app_id\)/\1/
    s/^;public_key = .*/public_key = public.pem/
    s/^;test = no/test = yes/
    s/^;test_private_key = .*/test_private_key = private.pem/
}' $conf
check "an account is filled in" as_user paynotifyctl config check
check "the schema is missing" fails as_user paynotifyctl db status
check "db migrate makes it" as_user paynotifyctl db migrate
check "it is there" as_user paynotifyctl db status
check "all of it is in /usr/share/paynotifyd/sql" same \
    "$(as_user paynotifyctl db status --json | grep -c applied_at)" \
    "$(find /usr/share/paynotifyd/sql -name '*.sql' | wc -l)"

# trigger ORDER: exit 1 unless it was answered with the provider's success
trigger() {
    as_user paynotifyctl trigger --account alipay/shop1 --out-trade-no "$1" payment.succeeded
}
replay() { as_user paynotifyctl replay "$work/captured/R1"; }
events() { as_user paynotifyctl events list --json | grep -c '"payment.succeeded"'; }
start
check "it becomes ready" eventually is_page 200 8601/readyz
check "a notification is recorded" trigger A1
check "as one event" same 1 "$(events)"
mkdir -m 777 "$work/captured"
as_user paynotifyctl trigger --account alipay/shop1 --out-trade-no R1 --out "$work/captured/R1" \
    payment.succeeded >/dev/null
check "another, byte for byte" replay

# --- upgrade ------------------------------------------------------------------------

stand_in
before=$daemon
cp $conf "$work/edited"
check "an upgrade installs over what runs" package -i "$work/next.deb"
check "the edited configuration is kept" cmp $conf "$work/edited"
check "its mode too" same "640 root:paynotify" "$(mode $conf)"
check "what runs is restarted, the rest is not started" grep -qx \
    'invoke try-restart paynotifyd.service paynotifyd-receive.service paynotifyd-deliver.service' \
    /run/asked
check "systemd reads the units anew before that" same "systemctl --system daemon-reload" \
    "$(head -1 /run/asked)"
check "nothing is enabled" fails grep -E 'enable|invoke start' /run/asked
check "the first says nothing of what to do" fails says "not started yet"
check "another process runs" eventually is_page 200 8601/readyz
daemon=$(pgrep -x -u paynotify paynotifyd)
check "from the new file" fails same "$before" "$daemon"
check "which is not the old one, deleted" same /usr/sbin/paynotifyd "$(readlink "/proc/$daemon/exe")"
check "it records" trigger A2
check "what came before the upgrade, too" replay
check "but that is a duplicate: three events" same 3 "$(events)"

# --- units --------------------------------------------------------------------------

units=/usr/lib/systemd/system
secure() {
    systemd-analyze security --offline=true --threshold=15 --no-pager "$1" >"$work/secure" ||
        { tail -1 "$work/secure"; return 1; }
}
for unit in paynotifyd paynotifyd-receive paynotifyd-deliver; do
    check "$unit is exposed by 1.5 at most" secure $units/$unit.service
    check "$unit starts a program that is there" test -x \
        "$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' $units/$unit.service)"
done
check "systemd finds nothing wrong with them" systemd-analyze verify --man=no \
    $units/paynotifyd*.service $units/paynotifyd*.socket
# By `cmake --install`, which has another prefix.
for unit in paynotifyd paynotifyd-receive paynotifyd-deliver; do
    for exec in ExecStart ExecReload; do
        check "without the package $exec of $unit is what was installed" test -x "$work/local$(
            sed -n "s/^$exec=\([^ ]*\).*/\1/p" \
                "$work/local/usr/local/lib/systemd/system/$unit.service" | head -1)"
    done
done
check "others cannot look into /etc/paynotifyd then either" same $'750\n640' \
    "$(stat -c %a "$work/local$etc" "$work/local$conf")"
# All but who they are.
# What is checked before a reload goes by the same role and file as the start.
rest() {
    sed -E "/^\#/d; /^(Description|Conflicts|ExecStart)=/d; /^ExecReload=.* --check\$/d" "$units/$1.service"
}
check "receive is as all" same "$(rest paynotifyd)" "$(rest paynotifyd-receive)"
check "deliver is as all" same "$(rest paynotifyd)" "$(rest paynotifyd-deliver)"

# --- completion -----------------------------------------------------------------------

compopt() { :; } # there is no line to edit here
# complete WORD...: what is offered for the last one
complete_words() {
    COMP_WORDS=(paynotifyctl "$@") COMP_CWORD=$#
    _paynotifyctl paynotifyctl "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}"
    printf '%s\n' "${COMPREPLY[@]}"
}
# "config check", "verify ", ...: the rows of the table.
rows() {
    awk -F'"' '/^\t    \.group = "/ { group = $2 " " }
        /^\t    \.name = "/ { print group $2; group = "" }' "$work/ctl_commands.c" | sort
}
offered() {
    local first second
    complete_words '' | grep -v '^-' | while read -r first; do
        second=$(complete_words "$first" '' | grep '^[a-z]*$') || second=
        case $(rows) in
        *"$first "*) printf "$first %s\\n" $second ;;
        *) echo "$first" ;;
        esac
    done | sort
}
# shellcheck source=systemd/paynotifyctl.bash
. /usr/share/bash-completion/completions/paynotifyctl
cd "$work/systemd" || exit 1 # whose files are no words
check "completion offers every command of the table, and no other" same "$(rows)" "$(offered)"
check "options of a command" same $'--duplicates\n--dialect' \
    "$(complete_words trigger --d | sort -r)"
check "and of one of two words" same --follow "$(complete_words events tail --f)"
check "accounts of the configuration" same alipay/shop1 "$(complete_words trigger --account a)"
check "files" same paynotifyd.sysusers "$(complete_words verify paynotifyd.sy)"
cd / || exit 1

# --- remove, purge ----------------------------------------------------------------------

check "it is removed" package -r paynotifyd
check "what runs is stopped before" grep -q 'invoke stop .*paynotifyd.service' /run/asked
kill -TERM "$daemon"
check "it ends" eventually fails running "$daemon"
check "the configuration stays" cmp $conf "$work/edited"
mkdir -p /etc/systemd/system/multi-user.target.wants
ln -s $units/paynotifyd.service /etc/systemd/system/multi-user.target.wants/
check "it is purged" package -P paynotifyd
check "that tells what is left: the database" says 'the database "paynotify"'
check "and keys" says "/etc/paynotifyd is left"
check "keys are left" same $'private.pem\npublic.pem' "$(ls $etc)"
check "the events are left" same 3 "$(psql -qXAt "$dsn" -c 'SELECT count(*) FROM paynotify.events')"
rm -r $etc
check "it installs again" package -i "$work/paynotifyd.deb"
check "and is purged with nothing to keep" package -P paynotifyd
check "of which nothing is told" fails says "is left: it"
# Everything that was changed in this file system, but for what dpkg remembers,
# the user, and this test's own.
left() {
    find "$work/layer/changed" -mindepth 1 ! -type d ! -path '*/var/lib/dpkg/*' ! -path '*/var/log/*' \
        ! -path '*/var/cache/*' ! -path '*/etc/*passwd*' ! -path '*/etc/*group*' \
        ! -path '*/etc/*shadow*' ! -path '*/etc/*.pwd.lock' \
        ! -name deb-systemd-invoke ! -name systemctl
    find "$work/layer/changed" /run -name '*paynotify*' ! -path '*/var/lib/dpkg/*'
}
check "nothing else is left" same '' "$(left)"

echo "$passed passed, $failed failed"
[ $failed = 0 ]
