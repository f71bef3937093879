#!/bin/bash
# One process for all, or one that receives and one that delivers: what each
# does, says and needs, and that an operator sees each attempt of a push.
set -u
# shellcheck source=tests/integration/cmd/lib.sh
. "$(dirname "$0")/lib.sh"
. tests/lib/pg.sh
. tests/lib/conf.sh
here=$(cd "$(dirname "$0")" && pwd)
declare -A pid=()
finish() {
    local name
    for name in "${!pid[@]}"; do
        kill -TERM "${pid[$name]}" 2>/dev/null
        wait "${pid[$name]}" 2>/dev/null
    done
    pg_stop
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

wait_for() { # command...: until it succeeds, 20 s at most
    local i
    for ((i = 0; i < 200; i++)); do
        "$@" && return 0
        sleep 0.1
    done
    wrong "in vain: $*"
    return 1
}
ready() { [ "$(curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:$1/readyz")" = 200 ]; }
# start NAME ARGUMENTS...: a daemon with a log of its own
start() {
    "$bin/paynotifyd" "${@:2}" 2>"$work/$1.log" &
    pid[$1]=$!
}
stop() { # NAME
    kill -TERM "${pid[$1]}"
    wait "${pid[$1]}"
    same $? 0
    unset "pid[$1]"
}
got() { [ "$(wc -l <"$work/got")" -ge "$1" ]; }
logged() { grep -qEs -- "$2" "$work/$1.log"; }
listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
sql() { psql -qXAt -v ON_ERROR_STOP=1 -c "$1" || wrong "SQL failed: $1"; }

pg_start || exit 1
make_keys
port=$(pn_free_port) admin=$(pn_free_port) admin2=$(pn_free_port) sink=$(pn_free_port)
printf 'whsec_%s\n' "$(head -c 32 /dev/urandom | base64)" >"$work/keys/app.secret"
chmod 600 "$work/keys/app.secret"

# What both processes have, and a file for each: its address, its own database
# role.
mkdir "$work/common"
make_conf "$work/common/accounts.conf"
sed -i 's,= keys/,= ../keys/,; s,:keys/,:../keys/,' "$work/common/accounts.conf"
deliver_section() { # NAME PORT
    printf '%s\n' "[deliver $1]" "url = http://127.0.0.1:$2/hook" "secret_file = keys/app.secret" 'timeout = 2s'
}
umask 077
{
    printf '%s\n' 'include = common/*.conf' '[server]' "listen = 127.0.0.1:$port" '[admin]' \
        "listen = 127.0.0.1:$admin" '[database]' "dsn = ${PN_DSN/user=paynotify/user=receiver}" \
        "admin_dsn = $PN_DSN"
    deliver_section app "$sink" # must not matter
} >"$work/receive.conf"
{
    printf '%s\n' '[admin]' "listen = 127.0.0.1:$admin2" \
        '[database]' "dsn = ${PN_DSN/user=paynotify/user=deliverer}" "admin_dsn = $PN_DSN"
    deliver_section app "$sink"
} >"$work/deliver.conf"
{
    sed 's/user=receiver/user=paynotify/' "$work/receive.conf"
} >"$work/all.conf"
umask 022

trigger() { run "$ctl" trigger -c "$work/all.conf" --account alipay/shop1 "$@" payment.succeeded; exits 0; }
ctl() { run "$ctl" "$1" "$2" -c "$work/all.conf" "${@:3}"; }

test_roles__1_a_role_that_there_is_not_is_usage() {
    run "$bin/paynotifyd" -c "$work/all.conf" --role send; exits 2; complains 'unknown role "send"'
    run "$bin/paynotifyd" -c "$work/all.conf" --role; exits 2
    for role in all receive deliver; do
        run "$bin/paynotifyd" -c "$work/all.conf" --role $role --check; exits 0; silent
        same "$out" 'configuration OK'
    done
    run "$ctl" config check -c "$work/all.conf"; exits 0; same "$out" 'configuration OK: 4 accounts, 1 endpoint'
    # a process that only delivers needs no account
    run "$ctl" config check -c "$work/deliver.conf" --json; exits 0
    json '.[0] == {"ok": true, "error": null, "accounts": 0, "endpoints": 1, "routes": 0, "warnings": null}'
}

# What is wrong with an endpoint must be found before anything is claimed.
test_roles__2_a_bad_endpoint_is_found_by_every_check() {
    echo 'whsec_no base64' >"$work/keys/bad.secret" && chmod 600 "$work/keys/bad.secret"
    sed 's,app.secret,bad.secret,' "$work/all.conf" >"$work/bad.conf" && chmod 600 "$work/bad.conf"
    run "$bin/paynotifyd" -c "$work/bad.conf" --check; exits 78; complains 'bad\.conf:[0-9]+: .*whsec_'
    run timeout 20 "$bin/paynotifyd" -c "$work/bad.conf" --role receive; exits 78
    run "$ctl" config check -c "$work/bad.conf"; exits 78; complains 'bad\.conf:[0-9]+: .*whsec_'
    # allowed, but hardly meant: said, and no more
    sed 's,http://127.0.0.1,http://app.example,' "$work/all.conf" >"$work/plain.conf" && chmod 600 "$work/plain.conf"
    run "$bin/paynotifyd" -c "$work/plain.conf" --check; exits 0; same "$out" 'configuration OK'
    complains 'plain\.conf:[0-9]+: .*http://'
    run "$ctl" config check -c "$work/plain.conf" --json; exits 0
    json '.[0].ok and (.[0].warnings | test("plain.conf"))'
}

# Each role with the rights of its own and no more.
test_roles__3_receive_and_deliver_side_by_side() {
    ctl db migrate; exits 0
    sql 'CREATE ROLE receiver LOGIN IN ROLE paynotify_receiver'
    sql 'CREATE ROLE deliverer LOGIN IN ROLE paynotify_deliverer'
    python3 "$here/sink.py" "$sink" "$work" &
    pid[sink]=$!
    : >"$work/got"
    wait_for listens "$sink" # or the first push is refused, and waits 5 s
    start receive -c "$work/receive.conf" --role receive
    wait_for ready "$admin"
    trigger --out-trade-no R1
    # a receiver does not push, nor begin to
    wait_for logged receive 'events for 1 endpoint wait for a process with --role deliver'
    same "$(<"$work/got")" ''
    same "$(sql 'SELECT count(*) FROM paynotify.consumers')" 0
    start deliver -c "$work/deliver.conf" --role deliver
    wait_for ready "$admin2"
    wait_for logged deliver 'delivering to 1 endpoint; database is ready'
    wait_for got 1
    same "$(jq -r '"\(.event.out_trade_no) \(.redelivery)"' "$work/got")" 'R1 null'
    trigger --out-trade-no R2
    wait_for got 2
    logged receive "listening on 127.0.0.1:$port; 4 accounts; database is ready" || wrong 'receive says otherwise'
    for name in receive deliver; do
        grep -E 'level=(err|warning)' "$work/$name.log" | grep -v 'running as root' && wrong "$name complains"
    done
    ctl consumers list --json; exits 0
    json --arg u "http://127.0.0.1:$sink/hook" '.[0] | .name == "app" and .kind == "push" and .url == $u'
}

# Two processes cannot have one address: it must be said which, and what to do.
test_roles__4_an_admin_address_in_use_is_told() {
    sed "s/:$admin2\$/:$admin/" "$work/deliver.conf" >"$work/clash.conf" && chmod 600 "$work/clash.conf"
    run timeout 20 "$bin/paynotifyd" -c "$work/clash.conf" --role deliver; exits 1
    complains "\[admin\] listen is in use.*paynotifyd\(8\).*127.0.0.1:$admin"
    # and a process with nothing to do says so
    sed '/^\[deliver/,$d' "$work/deliver.conf" | sed '/^\[admin/,/^listen/d' >"$work/none.conf"
    chmod 600 "$work/none.conf"
    start none -c "$work/none.conf" --role deliver
    wait_for logged none 'nothing to do: .*\[deliver NAME\]'
    stop none
}

# A failing endpoint: each attempt with its status, error and answer; then by
# hand, under the same id.
test_roles__5_attempts_are_shown_and_a_redelivery_is_marked() {
    local seq id
    echo 500 >"$work/answer"
    trigger --out-trade-no F1
    seq=$(sql "SELECT seq FROM paynotify.events WHERE out_trade_no = 'F1'")
    attempted() {
        ctl deliveries show "$seq" --json
        jq -e '.attempts | length >= 1' <<<"$out" >/dev/null
    }
    wait_for attempted
    json --argjson s "$seq" '.[0] | .seq == $s and .deliveries[0].state == "retry" and .deliveries[0].due_at
        and (.attempts[0] | .consumer == "app" and .attempt == 1 and .status == 500 and .outcome == "retry"
            and .answer == "answer 500" and .error and .latency_us > 0 and .started_at
            and .redelivery == false)'
    id=$(jq -r .event_id <<<"$out")
    ctl deliveries show "$id"; exits 0; silent
    says '^STARTED +CONSUMER +ATTEMPT +OUTCOME +STATUS +LATENCY +ERROR +ANSWER$'
    says '^20[0-9TZ:-]+ +app +1 +retry +500 +[0-9]+\.[0-9] ms +.* answer 500$'
    rm "$work/answer"
    ctl deliveries redeliver "$id" --consumer app --reason 'fixed' --actor ops; exits 0
    redelivered() { jq -e "select(.redelivery == \"true\" and .id == \"$id\")" "$work/got" >/dev/null; }
    wait_for redelivered
    is_done() {
        ctl deliveries show "$id" --json
        jq -e '.deliveries[0].state == "done"' <<<"$out" >/dev/null
    }
    wait_for is_done
    json '.[0].attempts | length >= 2 and .[-1].status == 200 and .[-1].outcome == "done" and .[-1].redelivery'
    ctl order show F1 --json; json '[.[] | select(.what == "attempt")] | length >= 2'
}

test_roles__6_pause_disable_and_resume() {
    ctl deliveries pause app --reason 'release'; exits 0
    trigger --out-trade-no P1
    ctl consumers list --json; json '.[0] | .state == "paused" and .reason == "release" and .behind >= 1'
    grep -q '"P1"' "$work/got" && wrong 'a paused endpoint is pushed to'
    ctl deliveries resume app; exits 0
    wait_for grep -q '"P1"' "$work/got"
    # 410: gone, until somebody says otherwise
    echo 410 >"$work/answer"
    trigger --out-trade-no G1
    disabled() {
        ctl consumers list --json
        jq -e '.state == "disabled"' <<<"$out" >/dev/null
    }
    wait_for disabled
    json '.[0].reason'
    rm "$work/answer"
    ctl deliveries resume app --reason 'back again'; exits 0
    trigger --out-trade-no G2
    wait_for grep -q '"G2"' "$work/got"
}

# A stop in the middle of a push waits for its answer, and receives meanwhile.
test_roles__7_all_in_one_stops_in_order() {
    stop receive
    stop deliver
    start all -c "$work/all.conf"
    wait_for logged all "listening on 127.0.0.1:$port; 4 accounts; 1 endpoint; database is ready"
    trigger --out-trade-no A1
    wait_for grep -q '"A1"' "$work/got"
    echo 0 >"$work/answer" # takes it and does not answer
    trigger --out-trade-no S1
    wait_for grep -q '"S1"' "$work/got"
    kill -TERM "${pid[all]}"
    wait_for logged all 'stopping on SIGTERM'
    trigger --out-trade-no S2
    wait "${pid[all]}"
    same $? 0
    unset 'pid[all]'
    same "$(sql "SELECT count(*) FROM paynotify.events WHERE out_trade_no IN ('S1', 'S2')")" 2
    # and what was cut off, or came meanwhile, is pushed by the next
    rm "$work/answer"
    start all -c "$work/all.conf"
    wait_for grep -q '"S2"' "$work/got"
    pushed() { jq -e 'select(.event.out_trade_no == "S1" and .status == 200)' "$work/got" >/dev/null; }
    wait_for pushed
    stop all
}

# shellcheck disable=SC2046 # in order: later ones use what earlier ones left
run_tests $(declare -F | sed -n 's/^declare -f \(test_roles__.*\)/\1/p')
