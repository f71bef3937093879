#!/bin/bash
# The examples of README.md and README.zh-CN.md, taken out of them and run: what
# an application copies at night must work as it stands. The application has a
# role of its own, with the rights that the README grants it and no more.
set -u
# shellcheck source=tests/integration/cmd/lib.sh
. "$(dirname "$0")/../cmd/lib.sh"
. tests/lib/pg.sh
. tests/lib/conf.sh
. tests/lib/python.sh
python=$(pn_python psycopg) || exit 1
daemon=
finish() {
    [ -z "$daemon" ] || kill -TERM "$daemon" 2>/dev/null
    [ -z "$daemon" ] || wait "$daemon" 2>/dev/null
    pg_stop
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

# block FILE LANGUAGE PATTERN: the one block of code in which PATTERN stands.
block() {
    awk -v language="$2" -v pattern="$3" '
        $0 == "```" language { inside = 1; text = ""; next }
        $0 == "```" && inside { inside = 0; if (index(text, pattern)) printf "%s", text; next }
        inside { text = text $0 "\n" }' "$1"
}
sql() { psql -qAtX -v ON_ERROR_STOP=1 "$@"; }
as_app() { PGUSER=shop_app "$@"; }

pg_start || exit 1
make_keys
port=$(pn_free_port)
conf=$work/c.conf
make_conf "$conf" '[server]' "listen = 127.0.0.1:$port" '[database]' "dsn = $PN_DSN"

# Pays orders that the application has.
pay() { # PREFIX COUNT
    sql -c "INSERT INTO public.orders SELECT '$1-' || n FROM generate_series(1, $2) n"
    for ((n = 1; n <= $2; n++)); do
        run "$ctl" trigger -c "$conf" --account alipay/shop1 --out-trade-no "$1-$n" \
            --amount 9900 payment.succeeded
        exits 0
    done
}
# Pays an order that the application cannot work on.
pay_bad() { # PREFIX
    sql -c "INSERT INTO public.orders VALUES ('$1-bad')"
    run "$ctl" trigger -c "$conf" --account alipay/shop1 --out-trade-no "$1-bad" \
        --amount 9900 payment.succeeded
    exits 0
}
bad_waits() { # PREFIX
    [ "$(sql -c "SELECT e.out_trade_no FROM paynotify.deliveries d JOIN paynotify.consumers c
        ON c.id = d.consumer_id JOIN paynotify.events e ON e.seq = d.seq WHERE c.name = 'shop'
        AND d.state = 'retry' AND d.retry_at > now() + interval '1 minute'
        AND d.reason LIKE '%check constraint%'")" = "$1-bad" ]
}
# Gives up what is to be retried, as an operator would.
skip_bad() {
    run "$ctl" deliveries skip -c "$conf" --consumer shop --state retry --reason 'order deleted'
    exits 0
}
paid() { sql -c "SELECT count(*) FROM public.orders WHERE out_trade_no LIKE '$1-%' AND paid = 9900"; }
all_paid() { [ "$(paid "$1")" = "$2" ]; }
# What is acked has no row, or one that is cleaned up later.
unfinished() {
    sql -c "SELECT count(*) FROM paynotify.deliveries d JOIN paynotify.consumers c
        ON c.id = d.consumer_id WHERE c.name = 'shop' AND d.state <> 'done'"
}
wait_for() {
    local i
    for ((i = 0; i < 200; i++)); do
        "$@" && return 0
        sleep 0.1
    done
    wrong "in vain: $*"
}
answers() { (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }

run "$ctl" db migrate -c "$conf"
[ "$status" = 0 ] || { echo "$err" >&2; exit 1; }
"$bin/paynotifyd" -c "$conf" 2>"$work/daemon.log" &
daemon=$!
current=start
wait_for answers
sql -c 'CREATE ROLE shop_app LOGIN' -c 'CREATE TABLE public.orders (out_trade_no text PRIMARY KEY,
    paid bigint, paid_by text UNIQUE, CHECK (paid IS NULL OR out_trade_no NOT LIKE $$%-bad$$))' -c 'GRANT ALL ON public.orders TO shop_app'

# The GRANT is the first thing an application needs; all below has no more.
test_readme__1_the_application_registers() {
    block "$readme" sql register_consumer >"$work/register.sql"
    run psql -qAtX -v ON_ERROR_STOP=1 -f "$work/register.sql"; exits 0
    same "$(sql -c "SELECT string_agg(name, ' ' ORDER BY name) FROM paynotify.consumers")" 'books shop'
}

test_readme__2_the_shell_claims_and_acks() {
    block "$readme" sh take.sql >"$work/take.sh"
    grep -v '^while' "$work/take.sh" >"$work/make.sh"
    grep '^while' "$work/take.sh" | sed "s/dbname=paynotify/dbname=$PGDATABASE/" >"$work/loop.sh"
    pay_bad "$tag-sh"
    pay "$tag-sh" 3
    # The first tries fail: it must not end by that.
    rm -f "$work/take.sql"
    (cd "$work" && as_app exec timeout 30 bash loop.sh) 2>"$work/loop.log" &
    local loop=$!
    wait_for grep -q 'take.sql: No such file' "$work/loop.log"
    (cd "$work" && bash make.sh)
    wait_for all_paid "$tag-sh" 3
    wait_for bad_waits "$tag-sh"
    skip_bad
    kill "$loop" 2>/dev/null
    wait "$loop" 2>/dev/null
    same "$(unfinished)" 0
}

test_readme__3_the_python_worker_is_woken() {
    block "$readme" python psycopg | sed "s/dbname=paynotify/dbname=$PGDATABASE/" >"$work/app.py"
    as_app timeout 30 "$python" "$work/app.py" >"$work/app.log" 2>&1 &
    local app=$!
    pay_bad "$tag-py"
    pay "$tag-py" 3
    wait_for all_paid "$tag-py" 3
    wait_for bad_waits "$tag-py"
    skip_bad
    kill "$app" 2>/dev/null
    wait "$app" 2>/dev/null
    same "$(unfinished)" 0
    same "$(grep -c '^evt_.*check constraint' "$work/app.log")" 1
    same "$(grep -c Traceback "$work/app.log")" 0
    same "$(sql -c "SELECT count(*) FROM public.orders WHERE paid_by IS NULL AND out_trade_no NOT LIKE '%-bad'")" 0
}

# The section loads, with the secret made as it is told to be; the group is the one
# of who runs this, since there is no package here that has made another.
test_readme__4_an_endpoint_is_configured() {
    block "$readme" ini '[deliver app]' >"$work/deliver.conf"
    block "$readme" sh 'openssl rand' | sed "s/chgrp paynotify /chgrp $(id -gn) /" \
        >"$work/secret.sh"
    (cd "$work" && bash secret.sh) || wrong 'no secret'
    make_conf "$work/with.conf" "$(<"$work/deliver.conf")"
    run "$ctl" config check -c "$work/with.conf"; exits 0
}

# Against a signature that openssl makes.
test_readme__5_a_signature_is_verified() {
    local now secret hex signature
    now=$(date +%s)
    secret=$(<"$work/app_webhook.secret")
    hex=$(base64 -d <<<"${secret#whsec_}" | od -An -tx1 | tr -d ' \n')
    signature=$(printf 'evt_1.%s.{"a":"\303\251"}' "$now" |
        openssl dgst -sha256 -mac HMAC -macopt "hexkey:$hex" -binary | base64)
    block "$readme" python is_genuine >"$work/verify.py"
    cat >>"$work/verify.py" <<PY
body = '{"a":"é"}'.encode()
def judge(signature, sent_at, body):
    return is_genuine("$secret", {"webhook-id": "evt_1", "webhook-timestamp": str(sent_at),
        "webhook-signature": signature}, body)
print(judge("v1,$signature", $now, body), judge("v1,AAAA v1,$signature", $now, body),
    judge("v1,$signature", $now, body + b" "), judge("v1,$signature", $now - 301, body),
    judge("v1a,$signature", $now, body), judge("", $now, body))
PY
    same "$("$python" "$work/verify.py" 2>&1)" 'True True False False False False'
}

# Commands and options that an operator types from the page.
test_readme__6_the_commands_are_there() {
    local line word name count=0
    while read -r line; do
        # shellcheck disable=SC2086
        set -- $line
        count=$((count + 1))
        name=("$2")
        [[ ! $3 =~ ^[a-z]+$ ]] || name+=("$3")
        run "$ctl" "${name[@]}" --help; exits 0
        for word; do
            [[ $word != --* ]] || grep -q -- "$word" <<<"$out" || wrong "no $word: $line"
        done
    done < <(grep -oE '(^|`)paynotifyctl [a-z]+ [^`#]*' "$readme" | tr -d '`')
    [ $count -ge 15 ] || wrong "$count commands found"
}

bad_pages=0
for readme in README.md README.zh-CN.md; do
    tag=en
    [ $readme = README.md ] || tag=zh
    echo "$readme"
    mapfile -t tests < <(declare -F | grep -o 'test_readme__.*')
    passed=0 failed=0
    run_tests "${tests[@]}" || bad_pages=$((bad_pages + 1))
done
exit $bad_pages
