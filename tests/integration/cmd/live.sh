#!/bin/bash
# paynotifyctl with a real PostgreSQL and a running daemon: db, trigger, replay,
# events, receipts, and what is said when the database is away.
set -u
# shellcheck source=tests/integration/cmd/lib.sh
. "$(dirname "$0")/lib.sh"
. tests/lib/pg.sh
. tests/lib/conf.sh
daemon=
finish() {
    [ -z "$daemon" ] || kill -TERM "$daemon" 2>/dev/null
    [ -z "$daemon" ] || wait "$daemon" 2>/dev/null
    pg_stop
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

pg_start || exit 1
make_keys
port=$(pn_free_port)
conf=$work/c.conf
make_conf "$conf" '[server]' "listen = 127.0.0.1:$port" "listen = unix:$work/sock" \
    'commit_timeout = 20s' \
    '[database]' "dsn = $PN_DSN password=geheim"

wait_for() { # command...: until it succeeds, 20 s at most
    local i
    for ((i = 0; i < 200; i++)); do
        "$@" && return 0
        sleep 0.1
    done
    wrong "in vain: $*"
    return 1
}
answers() { (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }
start_daemon() {
    "$bin/paynotifyd" -c "$conf" 2>"$work/daemon.log" &
    daemon=$!
    wait_for answers
}
trigger() { run "$ctl" trigger -c "$conf" "$@"; }
events() { run "$ctl" events list -c "$conf" --json "$@"; }
receipts() { run "$ctl" receipts list -c "$conf" --json "$@"; }

# Without its schema everything says the one thing to do.
test_live__1_without_the_schema_db_migrate_is_named() {
    run "$ctl" db status -c "$conf"; exits 1; complains 'paynotifyctl db migrate'
    run "$ctl" db status -c "$conf" --json; exits 1
    json 'length > 0 and all(.[]; .state == "pending" and .applied_at == null and .number > 0)'
    for c in 'events list' 'events tail' 'events show 1' 'receipts list'; do
        # shellcheck disable=SC2086
        run "$ctl" $c -c "$conf"; exits 1; complains 'paynotifyctl db migrate'; same "$out" ''
    done
}

test_live__2_migrate_applies_once_and_status_tells() {
    local n
    run "$ctl" db migrate -c "$conf" --json; exits 0
    json 'length > 0 and all(.[]; .state == "applied" and .name and .applied_at)'
    n=$(jq -s length <<<"$out")
    run "$ctl" db migrate -c "$conf" --json; exits 0
    json --argjson n "$n" 'length == $n and all(.[]; .state == "already")'
    run "$ctl" db migrate -c "$conf"; exits 0; says 'up to date: 0 applied now'
    run "$ctl" db status -c "$conf"; exits 0; silent; says '0001'
    run "$ctl" db status -c "$conf" --json; exits 0
    json --argjson n "$n" 'length == $n and all(.[]; .state == "applied" and .applied_at)'
    run "$ctl" events list -c "$conf"; exits 0; same "$out" ''; complains 'no events yet'
    run "$ctl" receipts list -c "$conf"; exits 0; complains 'no receipts yet'
    events; exits 0; silent; same "$out" ''
    start_daemon
}

# The heart of it: any number of deliveries, one event, always the success.
test_live__3_trigger_delivers_and_one_event_is_recorded() {
    trigger --account alipay/shop1 --out-trade-no A1 --duplicates 3 --retries 2 payment.succeeded
    exits 0; silent
    says '^ +1  first +webhook:alipay:A1  ->  200 success  '
    says '^ +1  retry '
    says '^sent 6 to .*: 6 answered with success, 0 not$'
    trigger --account wechat/shop1 --out-trade-no W1 --duplicates 3 --retries 2 --json payment.succeeded
    exits 0; silent
    json 'length == 7 and all(.[0:6][]; .status == 200 and .success and .body == "{\"code\":\"SUCCESS\"}"
        and .out_trade_no == "W1" and (.key | startswith("webhook:wechat:")))
        and ([.[0:6][].kind] == ["first","duplicate","duplicate","duplicate","retry","retry"])
        and .[6] == {"sent": 6, "succeeded": 6, "failed": 0, "not_sent": 0}'
    trigger --account wechat/shop1 --out-trade-no V1 --dialect v2 --duplicates 1 payment.succeeded
    exits 0; says 'return_code'
    events; exits 0
    json '[.[].out_trade_no] == ["V1", "W1", "A1"]'
    json 'all(.[]; .type == "payment.succeeded" and .livemode == false and .received_at and .seq > 0
        and .payload)'
    # --to: a URL with a path, one without, a unix socket
    trigger --account alipay/shop1 --to "http://127.0.0.1:$port/notify/alipay/shop1" payment.succeeded
    exits 0
    trigger --account alipay/shop1 --to "http://127.0.0.1:$port" payment.succeeded; exits 0
    trigger --account alipay/shop1 --to "unix:$work/sock" payment.succeeded; exits 0
    trigger --account alipay/shop1 --to "http://127.0.0.1:$port/notify/alipay/nobody" payment.succeeded
    exits 1; says '404'
}

# Many at once, each delivered often on many connections: one event each.
test_live__4_connections_meet_and_nothing_is_doubled() {
    local before after
    events --limit 0; before=$(wc -l <<<"$out")
    trigger --account wechat/shop1 --count 20 --duplicates 15 --connections 32 --json payment.succeeded
    exits 0; json '.[-1] == {"sent": 320, "succeeded": 320, "failed": 0, "not_sent": 0}'
    events --limit 0; after=$(wc -l <<<"$out")
    same $((after - before)) 20
}

# The status and the words for each verdict of section 6, by the daemon.
status_of() { # verdict
    case $1 in
    accepted) echo 200 ;;
    malformed | unsupported) echo 400 ;;
    bad_signature | unknown_key | stale) echo 401 ;;
    wrong_account) echo 403 ;;
    undecryptable) echo 500 ;;
    *) echo "?$1" ;;
    esac
}

# verify and the daemon must agree on every event and every oddity.
test_live__5_the_daemon_agrees_with_verify_on_every_sample() {
    local account kind name options file verdict wanted=() files=() names=()
    while read -r account options; do
        while read -r kind name; do
            file=$work/sample.${#files[@]}.http
            if [ "$kind" = event ]; then
                # shellcheck disable=SC2086
                trigger --account "$account" $options "$name" --out "$file"
            else
                # shellcheck disable=SC2086
                trigger --account "$account" $options payment.succeeded --oddity "$name" --out "$file"
            fi
            [ "$status" = 0 ] || { complains 'in this dialect'; continue; }
            run "$ctl" verify -c "$conf" --account "$account" --json "$file"
            [[ $out =~ \"verdict\":\ *\"([a-z_]+)\" ]]
            verdict=${BASH_REMATCH[1]:-none}
            files+=("$file")
            names+=("$account $options $kind $name: verify says $verdict")
            # every APIv2 reply is a 200, the XML tells
            grep -q '^<' "$file" && wanted+=("200 $verdict") ||
                wanted+=("$(status_of "$verdict") $verdict")
        done < <("$ctl" trigger -c "$conf" --account "$account" --list --json |
            jq -r 'to_entries[0] | "\(.key) \(.value)"')
    done <<LIST
alipay/shop1
alipay/shop1 --charset GBK
wechat/shop1
wechat/shop1 --dialect v2
wechat/hmac
LIST
    [ ${#files[@]} -gt 50 ] || wrong 'too few samples'
    run "$ctl" replay -c "$conf" --json "${files[@]}"
    json --args '[.[] | select(.status)] | [map({status, success}), [$ARGS.positional[] | split(" ") |
        {status: .[0] | tonumber, success: (.[1] == "accepted")}]] | .[0] == .[1]' "${wanted[@]}"
    [ "$bad" = 0 ] || printf '  %s\n' "${names[@]}"
    run "$ctl" receipts list -c "$conf" --verdict bad_sig; exits 2; complains 'none of recorded, .*bad_signature, '
    receipts --verdict bad_signature
    json 'length > 0 and all(.[]; .verdict == "bad_signature")'
}

# Same key, other content: the amount was changed and signed right.
test_live__6_a_changed_amount_under_a_known_key_is_a_conflict() {
    trigger --account alipay/shop1 --seed 77 payment.succeeded; exits 0
    trigger --account alipay/shop1 --seed 77 --oddity bad-amount --json payment.succeeded; exits 1
    json '.[0].status == 422 and .[0].body == "fail" and .[0].success == false
        and .[1] == {"sent": 1, "succeeded": 0, "failed": 1, "not_sent": 0}'
    trigger --account wechat/shop1 --seed 77 payment.succeeded; exits 0
    trigger --account wechat/shop1 --seed 77 --oddity bad-amount --json payment.succeeded; exits 1
    json '.[0].status == 422'
    # the usual one is still a duplicate of the recorded one
    trigger --account alipay/shop1 --seed 77 payment.succeeded; exits 0
}

test_live__7_replay_sends_the_very_bytes() {
    trigger --account alipay/shop1 --out-trade-no R1 payment.succeeded --out "$work/r.http"; exits 0
    run "$ctl" replay -c "$conf" "$work/r.http" "$work/r.http"; exits 0; silent
    says 'r\.http  ->  200 success'
    same "$(wc -l <<<"$out")" 2
    events --out-trade-no R1; json 'length == 1'
    run "$ctl" replay --to "http://127.0.0.1:$port" --json "$work/r.http"; exits 0
    json '.[0].status == 200 and .[0].body == "success" and .[0].success'
    run "$ctl" replay --to "unix:$work/sock" "$work/r.http"; exits 0
    sed 's/total_amount=88.88/total_amount=00.01/' "$work/r.http" >"$work/t.http"
    run "$ctl" replay -c "$conf" "$work/t.http"; exits 1; says '->  401 fail'
    printf 'GARBAGE\r\n\r\n' >"$work/g.http"
    run "$ctl" replay -c "$conf" "$work/g.http"; exits 1; same "$out" ''
    complains 'g\.http: not sent, it is no HTTP request: .*request line'
    run "$ctl" replay -c "$conf" "$work/r.http" "$work/none.http"; exits 2; complains 'none\.http'
    same "$out" ''
    run "$ctl" replay --to http://127.0.0.1:1 "$work/r.http"; exits 1; complains 'is the daemon running'
}

test_live__8_events_are_filtered_shown_and_tailed() {
    local seq id key
    events --out-trade-no A1; exits 0; json 'length == 1'
    seq=$(jq .seq <<<"$out") id=$(jq -r .id <<<"$out") key=$(jq -r .key <<<"$out")
    for which in "$seq" "$id" "$key"; do
        run "$ctl" events show -c "$conf" --json "$which"; exits 0
        json --arg id "$id" 'length == 1 and .[0].id == $id and .[0].payload.out_trade_no == "A1"'
    done
    run "$ctl" events show -c "$conf" "$id"; exits 0; silent
    says '^key +webhook:alipay:A1$'; says '^  out_trade_no = A1$'; says 'test account'
    run "$ctl" events show -c "$conf" nothing; exits 1; complains 'no event "nothing"'
    run "$ctl" events show -c "$conf" 999999999; exits 1
    run "$ctl" events show -c "$conf" "$id" --tenant nobody; exits 1; complains 'no event "evt_.*" of tenant nobody;'
    run "$ctl" deliveries show -c "$conf" "$id" --tenant nobody; exits 1; complains 'of tenant nobody;'
    run "$ctl" events show -c "$conf" "$id" --tenant shop1; exits 0; silent
    events --key "$key"; json 'length == 1'
    events --type refund.succeeded; json 'length > 0 and all(.[]; .type == "refund.succeeded")'
    events --type 'refund.*'; json 'length > 0 and all(.[]; .type | startswith("refund."))'
    events --tenant hmac; json 'length > 0 and all(.[]; .tenant == "hmac")'
    events --tenant nobody; exits 0; same "$out" ''
    events --since 1h; json 'length > 3'
    events --since 2099-01-01; exits 0; same "$out" ''
    events --limit 2; json 'length == 2 and .[0].seq > .[1].seq'
    run "$ctl" events list -c "$conf" --out-trade-no A1; exits 0; silent
    says '^SEQ +RECEIVED +TYPE +TENANT +OUT_TRADE_NO +AMOUNT +KEY$'
    says "^$seq +20[0-9TZ:-]+ +payment.succeeded +shop1 +A1 +88\.88 CNY +webhook:alipay:A1\$"
    run "$ctl" events tail -c "$conf" --json; exits 0
    json 'length == 10 and ([.[].seq] == ([.[].seq] | sort))'
    run "$ctl" events tail -c "$conf" --limit 3; exits 0; same "$(wc -l <<<"$out")" 4
}

# What is recorded while tail waits is shown, once; also what took its number
# before another and was committed after it.
test_live__9_tail_follows() {
    local tail late
    late=$(psql -qXAt -c "SELECT nextval(pg_get_serial_sequence('paynotify.event_log', 'seq'))")
    "$ctl" events tail -c "$conf" --json --follow --limit 1 >"$work/tail" 2>"$work/tail.err" &
    tail=$!
    wait_for test -s "$work/tail"
    trigger --account alipay/shop1 --out-trade-no F1 --duplicates 1 payment.succeeded; exits 0
    wait_for grep -q '"F1"' "$work/tail"
    psql -qX -c "INSERT INTO paynotify.event_log (seq, received_at, id, receipt_id, livemode, type,
            provider, tenant, key, request_hash, out_trade_no) OVERRIDING SYSTEM VALUE
        SELECT $late, received_at, gen_random_uuid(), receipt_id, livemode, type,
            provider, tenant, key || ':late', request_hash, 'LATE'
        FROM paynotify.event_log WHERE out_trade_no = 'F1'"
    wait_for grep -q '"LATE"' "$work/tail"
    trigger --account alipay/shop1 --out-trade-no F2 payment.succeeded; exits 0
    wait_for grep -q '"F2"' "$work/tail"
    kill "$tail" && wait "$tail" 2>/dev/null
    out=$(<"$work/tail") status=0
    json '[.[1:][].out_trade_no] == ["F1", "LATE", "F2"]'
}

# Who watches over night must not find out in the morning that the database was
# restarted at two; but what waiting cannot mend ends it.
test_live__9b_tail_waits_for_the_database() {
    local tail
    "$ctl" events tail -c "$conf" --json --follow --limit 1 >"$work/tail2" 2>"$work/tail2.err" &
    tail=$!
    wait_for test -s "$work/tail2"
    pg_ctl_ -m fast -w stop >/dev/null
    wait_for grep -q 'paynotifyctl: database: .*trying again' "$work/tail2.err"
    pg_resume
    wait_for grep -q 'database answers again' "$work/tail2.err"
    recorded() {
        trigger --account alipay/shop1 --out-trade-no N1 payment.succeeded
        [ "$status" = 0 ]
    }
    wait_for recorded # the daemon has to come back too
    wait_for grep -q '"N1"' "$work/tail2"
    same "$(wc -l <"$work/tail2.err")" 2
    out=$(<"$work/tail2") status=0
    json '[.[].seq] | length == 2 and . == (sort | unique)'
    grep -q geheim "$work/tail2.err" && wrong 'the password is shown'
    psql -qX -c 'ALTER TABLE paynotify.event_log RENAME TO away'
    ended() { ! kill -0 "$tail" 2>/dev/null; }
    wait_for ended || kill "$tail"
    wait "$tail"
    same $? 1
    psql -qX -c 'ALTER TABLE paynotify.away RENAME TO event_log'
    grep -q 'paynotifyctl db migrate' "$work/tail2.err" || wrong 'it is not said what to do'
}

test_live__a_receipts_tell_of_every_request() {
    local n
    receipts --out-trade-no F1; exits 0
    json 'length == 2 and all(.[]; .provider == "alipay" and .tenant == "shop1" and .status == 200
        and .body_bytes > 500 and .received_at and (.id | test("^[0-9a-f-]{36}$")))'
    receipts --provider wechat --limit 5; json 'length == 5 and all(.[]; .provider == "wechat")'
    receipts --tenant hmac; json 'length > 0 and all(.[]; .tenant == "hmac")'
    receipts --since 2099-01-01T00:00:00Z; exits 0; same "$out" ''
    run "$ctl" receipts list -c "$conf" --limit 3; exits 0; silent
    says '^RECEIVED +ACCOUNT +VERDICT +STATUS'; same "$(wc -l <<<"$out")" 4
    n=$("$ctl" receipts list -c "$conf" --limit 0 --json | wc -l)
    [ "$n" -gt 300 ] || wrong "only $n receipts"
}

# A table of any length: more rows than one block of it.
test_live__b_long_lists_are_whole() {
    local n
    trigger --account alipay/shop1 --count 600 --connections 8 payment.pending; exits 0
    n=$("$ctl" events list -c "$conf" --type payment.pending | wc -l)
    [ "$n" -ge 602 ] || wrong "only $n lines"
    run "$ctl" events list -c "$conf" --limit 0; exits 0; silent
    trigger --account alipay/shop1 --count 450 --connections 8 payment.closed; exits 0
    run "$ctl" events list -c "$conf"; exits 0; complains 'newest 1000'
    same "$(wc -l <<<"$out")" 1001
}

# What is wrong with the schema, or the role, is not "start PostgreSQL".
test_live__c_other_faults_say_what_to_do() {
    psql -qX -c "INSERT INTO paynotify.migrations VALUES (9999, 'x', 'y')"
    run "$ctl" db status -c "$conf"; exits 1; grep -q 'start PostgreSQL' <<<"$err" && wrong 'start PostgreSQL?'
    psql -qX -c 'DELETE FROM paynotify.migrations WHERE number = 9999'
    # as root without a user in the dsn: libpq takes root
    make_conf "$work/nobody.conf" '[database]' "dsn = host=$PN_PG_DIR user=nobody dbname=$PGDATABASE"
    run "$ctl" db status -c "$work/nobody.conf"; exits 1; grep -q 'start PostgreSQL' <<<"$err" && wrong 'start PostgreSQL?'
    complains 'role "nobody" does not exist; run it as the daemon.s user, `runuser -u paynotify -- paynotifyctl \.\.\.`, or mend the user of \[database\] dsn in '
    psql -qX -c 'CREATE ROLE stranger LOGIN'
    make_conf "$work/stranger.conf" '[database]' "dsn = host=$PN_PG_DIR user=stranger dbname=$PGDATABASE"
    run "$ctl" events list -c "$work/stranger.conf"; exits 1
    complains 'permission denied.*\[database\] admin_dsn in .*stranger\.conf'
}

# A ticket gets pasted: it must say what to do and never the password.
test_live__d_a_database_that_is_away_is_told_without_the_password() {
    local c
    make_conf "$work/away.conf" '[database]' \
        "dsn = host=$work/nothing user=paynotify dbname=x password=geheim connect_timeout=2"
    for c in 'db migrate' 'db status' 'events list' 'events tail' 'events show 1' 'receipts list'; do
        # shellcheck disable=SC2086
        run "$ctl" $c -c "$work/away.conf"; exits 1; same "$out" ''
        complains "host=$work/nothing user=paynotify dbname=x.*start PostgreSQL or mend \[database\] dsn in .*away\.conf"
        grep -q geheim <<<"$err" && wrong 'the password is shown'
    done
    # libpq would quote the piece it does not understand
    make_conf "$work/odd.conf" '[database]' "dsn = host=$work password=ge heim"
    for c in 'db migrate' 'events list'; do
        # shellcheck disable=SC2086
        run "$ctl" $c -c "$work/odd.conf"; exits 78; complains 'odd\.conf:2: dsn: not a connection string'
        grep -q heim <<<"$err" && wrong 'a piece of the password is shown'
    done
    make_conf "$work/admin.conf" '[database]' "dsn = $PN_DSN" \
        "admin_dsn = host=$work/nothing user=owner dbname=x"
    run "$ctl" db migrate -c "$work/admin.conf"; exits 1; complains 'user=owner'
    run "$ctl" events list -c "$work/admin.conf" --limit 1; exits 1; complains 'user=owner.*admin_dsn'
    # the receiver's role may not read: said, with the setting that helps
    psql -qX -c 'CREATE ROLE receiver LOGIN IN ROLE paynotify_receiver'
    make_conf "$work/role.conf" '[database]' "dsn = ${PN_DSN/user=paynotify/user=receiver}"
    for c in 'events list' 'events tail' 'events show 1'; do
        # shellcheck disable=SC2086
        run "$ctl" $c -c "$work/role.conf"; exits 1
        complains 'permission denied.*to read needs .*paynotify_reader: .*\[database\] admin_dsn in .*role\.conf'
    done
    # who may read may not act: that is the owner's
    psql -qX -c 'CREATE ROLE looker LOGIN IN ROLE paynotify_reader'
    make_conf "$work/looker.conf" '[database]' "dsn = ${PN_DSN/user=paynotify/user=looker}"
    run "$ctl" events list -c "$work/looker.conf" --limit 1; exits 0
    psql -qX -c "SELECT paynotify.register_consumer('looked')" >/dev/null
    for c in 'pause looked' 'skip 1 --consumer looked'; do
        for who in looker role; do
            # shellcheck disable=SC2086
            run "$ctl" deliveries $c -c "$work/$who.conf" --reason no; exits 1
            complains "permission denied.*\[database\] admin_dsn in .*$who\.conf"
            [ $who = role ] || complains 'that needs the owner of the tables'
            [ $who = role ] || ! grep -q paynotify_reader <<<"$err" || wrong "a reader is told to become one: $err"
        done
    done
    psql -qX -c "SELECT paynotify.remove_consumer('looked', 'test', 'test')" >/dev/null
    run "$ctl" db migrate -c "$work/looker.conf"; exits 1; complains 'permission denied.*that needs the owner of the tables'
    make_conf "$work/role.conf" '[database]' "dsn = ${PN_DSN/user=paynotify/user=receiver}" \
        "admin_dsn = $PN_DSN"
    for c in 'events list' 'events tail' "events show $(psql -qXAt -c 'SELECT min(seq) FROM paynotify.events')" 'receipts list' 'db status'; do
        # shellcheck disable=SC2086
        run "$ctl" $c -c "$work/role.conf"; exits 0
    done
}

test_live__e_the_daemon_gone_is_told_once() {
    kill -TERM "$daemon"
    wait "$daemon"
    same $? 0
    daemon=
    trigger --account alipay/shop1 --count 3 payment.succeeded; exits 1
    complains 'is the daemon running'; same "$(wc -l <<<"$err")" 1
    trigger --account alipay/shop1 --to "unix:$work/sock" payment.succeeded; exits 1
}

# shellcheck disable=SC2046 # in order: later ones use what earlier ones recorded
run_tests $(declare -F | sed -n 's/^declare -f \(test_live__.*\)/\1/p')
