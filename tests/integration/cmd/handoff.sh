#!/bin/bash
# The hand-off as an operator sees it: what consumers and deliveries there are,
# what is done about them, and one order's timeline. Applications that pull, so
# that every state is had at once; roles.sh has the endpoints.
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
make_conf "$conf" '[server]' "listen = 127.0.0.1:$port" 'commit_timeout = 20s' '[database]' "dsn = $PN_DSN"

ctl() { run "$ctl" "$1" "$2" -c "$conf" "${@:3}"; }
sql() { psql -qXAt -v ON_ERROR_STOP=1 -c "$1" || wrong "SQL failed: $1"; }
pay() { # out_trade_no: one event
    run "$ctl" trigger -c "$conf" --account alipay/shop1 --out-trade-no "$1" "${2:-payment.succeeded}"
    exits 0
}
seq_of() { sql "SELECT seq FROM paynotify.events WHERE out_trade_no = '$1' ORDER BY seq LIMIT 1"; }
register() { sql "SELECT paynotify.register_consumer('$1')" >/dev/null; }
# One line an event: order number, token.
claim() { sql "SELECT out_trade_no || ' ' || token FROM paynotify.claim('$1', 100, interval '1 hour') ORDER BY seq"; }
settle() { # token outcome reason
    same "$(sql "SELECT paynotify.settle(ARRAY['$1'::uuid], ARRAY['$2'], ARRAY[interval '1 hour'],
        ARRAY['$3'])")" '' # no lost lease
}
token_of() { awk -v o="$1" '$1 == o { print $2 }' "$work/claimed"; }
state_of() { # consumer order
    sql "SELECT d.state FROM paynotify.deliveries d JOIN paynotify.consumers c ON c.id = d.consumer_id
        JOIN paynotify.events e ON e.seq = d.seq WHERE c.name = '$1' AND e.out_trade_no = '$2'
        ORDER BY d.seq LIMIT 1"
}

test_handoff__1_without_the_schema_db_migrate_is_named() {
    for c in 'consumers list' 'deliveries list' 'deliveries show 1' 'order show 1' \
        'deliveries redeliver 1 --reason x' 'deliveries skip 1 --reason x' \
        'deliveries pause app --reason x' 'deliveries resume app' 'consumers remove app --reason x'; do
        # shellcheck disable=SC2086
        ctl $c; exits 1; complains 'paynotifyctl db migrate'; same "$out" ''
    done
    ctl db migrate; exits 0
}

# A fresh installation must say what is missing, not look broken.
test_handoff__2_without_a_consumer_it_is_said_how_to_make_one() {
    ctl consumers list; exits 0; same "$out" ''; complains 'no consumers yet'
    ctl consumers list --json; exits 0; silent; same "$out" ''
    ctl deliveries list; exits 0; complains 'no consumers yet'; complains 'nothing that was claimed is unfinished$'; same "$out" ''
    ctl deliveries list --json; exits 0; silent; same "$out" ''
    ctl deliveries list --consumer app; exits 1; complains 'no consumer "app"; there are none yet'
    ctl deliveries redeliver 1 --reason x; exits 1; complains 'register_consumer'; complains '\[deliver NAME\]'
    ctl deliveries pause app --reason x; exits 1; complains 'no consumer "app"'
    ctl consumers remove app --reason x; exits 1; complains 'no consumer "app"; there are none yet'
    ctl deliveries show 1; exits 1; complains 'no event "1"'
    ctl order show NONE; exits 1; complains 'order "NONE"'
    "$bin/paynotifyd" -c "$conf" --role receive 2>"$work/daemon.log" &
    daemon=$!
    for ((i = 0; i < 200; i++)); do
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && return
        sleep 0.1
    done
    wrong 'the daemon does not answer'
}

# One consumer, an event in every state; the list is what is not done, no more.
test_handoff__3_lists_show_every_state_and_nothing_that_is_done() {
    for o in DONE LEASED RETRY DEAD1 DEAD2 SKIP; do pay $o; done
    pay LEASED payment.closed
    register ledger
    claim ledger >"$work/claimed"
    same "$(wc -l <"$work/claimed")" 6
    settle "$(token_of DONE)" 'done' ''
    settle "$(token_of RETRY)" retry 'the ledger is closed'
    settle "$(token_of DEAD1)" dead 'no such account'
    settle "$(token_of DEAD2)" dead $'bad \e[31mreason'
    settle "$(token_of SKIP)" dead 'no such account'
    pay NEW
    ctl deliveries list --json; exits 0; silent
    json 'length == 6 and ([.[].seq] == ([.[].seq] | sort))
        and all(.[]; .consumer == "ledger" and (.event_id | test("^evt_[0-9a-f]{32}$"))
            and .tenant == "shop1" and .received_at and .redelivery == false)
        and ([.[] | [.out_trade_no, .state, .attempts]] | sort) == [["DEAD1", "dead", 1],
            ["DEAD2", "dead", 1], ["LEASED", "leased", 1], ["LEASED", "waiting", 0],
            ["RETRY", "retry", 1], ["SKIP", "dead", 1]]
        and (.[] | select(.state == "retry")
            | .reason == "the ledger is closed" and (.due_at | test("^20.*Z$")))
        and all(.[] | select(.state == "dead"); .due_at == null)'
    ctl consumers list --json; exits 0; silent
    json 'length == 1 and (.[0] | .name == "ledger" and .kind == "pull" and .state == "active"
        and .reason == null and .url == null and .behind == 1 and .leased == 1 and .waiting == 1
        and .retrying == 1 and .dead == 3 and .oldest_received_at)'
    ctl consumers list; exits 0; silent
    says '^CONSUMER +KIND +STATE +BEHIND +LEASED +WAITING +RETRY +DEAD +OLDEST +NOTE$'
    says '^ledger +pull +active +1 +1 +1 +1 +3 +20[0-9TZ:-]+ +-$'
    # for people the overview first, and nothing that a terminal would obey
    ctl deliveries list; exits 0; silent
    same "$(head -1 <<<"$out" | cut -c1-8)" CONSUMER
    says '^SEQ +CONSUMER +STATE +ATTEMPTS +DUE +TYPE +TENANT +OUT_TRADE_NO +EVENT +REASON$'
    says "^$(seq_of DEAD2) +ledger +dead +1 +- +payment.succeeded +shop1 +DEAD2 +evt_[0-9a-f]{32} +bad .x1b.31mreason\$"
    # filters
    ctl deliveries list --json --state dead; json 'length == 3 and all(.[]; .state == "dead")'
    ctl deliveries list --json --limit 2; json 'length == 2'
    ctl deliveries list --json --tenant nobody; exits 0; same "$out" ''
    ctl deliveries list --tenant nobody; exits 0; complains 'nothing that was claimed is unfinished and matches'
    ctl deliveries list --json --consumer ledger; json 'length == 6'
    ctl deliveries list --json --consumer leger; exits 1; same "$out" ''
    complains 'no consumer "leger"; there is ledger'
    ctl deliveries list --state 'done'; exits 2; complains 'leased, waiting, retry, dead'
}

test_handoff__4_show_tells_where_one_event_stands() {
    local seq id key
    seq=$(seq_of DEAD1)
    ctl deliveries show "$seq" --json; exits 0; silent
    json --argjson s "$seq" 'length == 1 and (.[0] | .seq == $s and .out_trade_no == "DEAD1"
        and .type == "payment.succeeded" and .provider == "alipay" and .tenant == "shop1" and .received_at
        and .attempts == [] and (.deliveries | length == 1 and (.[0] | .consumer == "ledger"
            and .state == "dead" and .attempts == 1 and .reason == "no such account"
            and .redelivery == false)))'
    id=$(jq -r .event_id <<<"$out") key=$(jq -r .key <<<"$out")
    for which in "$id" "$key"; do
        ctl deliveries show "$which" --json; exits 0
        json --argjson s "$seq" '.[0].seq == $s and (.[0].deliveries | length == 1)'
    done
    ctl deliveries show "$id"; exits 0; silent
    says '^key +webhook:alipay:DEAD1$'; says '^CONSUMER +STATE'; says '^ledger +dead +1 +- +no such account$'
    ctl deliveries show "$(seq_of DONE)" --json; json '.[0].deliveries[0].state == "done"'
    ctl deliveries show "$(seq_of NEW)" --json; json '.[0].deliveries[0].state == "new"'
    ctl deliveries show nothing; exits 1; complains 'no event "nothing"'
    # an event that nobody takes
    sql "UPDATE paynotify.consumers SET tenants = '{other}'"
    ctl deliveries show "$(seq_of NEW)"; exits 0; says '^no consumer takes it$'
    ctl deliveries show "$(seq_of NEW)" --json; exits 0; json '.[0].deliveries == [] and .[0].attempts == []'
    sql "UPDATE paynotify.consumers SET tenants = NULL"
}

# What was done by hand must be found again with who and why, or nobody can tell
# an operator from a fault.
test_handoff__5_redeliver_and_skip_act_and_are_recorded() {
    local id
    ctl deliveries redeliver "$(seq_of DEAD1)"; exits 2; complains 'needs --reason'
    ctl deliveries redeliver --reason why; exits 2; complains 'needs EVENT, or --state dead'
    ctl deliveries redeliver 1 --state dead --reason why; exits 2; complains 'not both'
    ctl deliveries skip --state waiting --reason why; exits 2; complains 'dead or retry'
    ctl deliveries skip 1 --reason '  '; exits 2; complains 'empty'
    ctl deliveries skip 1 --reason $'\xff'; exits 2; complains 'UTF-8'
    ctl deliveries skip 1 --reason "$(head -c 1001 /dev/zero | tr '\0' x)"; exits 2; complains '1000 bytes'
    same "$(sql 'SELECT count(*) FROM paynotify.delivery_actions')" 0
    # the only consumer there is need not be named
    id=$("$ctl" events list -c "$conf" --out-trade-no DEAD1 --json | jq -r .id)
    ctl deliveries redeliver "$id" --reason 'account opened' --actor 'wang wei'; exits 0; silent
    says "^$id: once more to ledger\$"
    same "$(state_of ledger DEAD1)" retry
    same "$(sql "SELECT action, seq, actor, reason FROM paynotify.delivery_actions")" \
        "redeliver|$(seq_of DEAD1)|wang wei|account opened"
    ctl deliveries list; says ' retry again +0 '
    ctl deliveries show "$id" --json; json '.[0] | .deliveries[0].redelivery == true
        and .actions[0].consumer == "ledger" and (.actions | map(.action + ":" + .actor + ":" + .reason)
            == ["redeliver:wang wei:account opened"]) and (.actions[0].at | test("^20.*Z$"))'
    ctl deliveries show "$id"; says '^20[0-9TZ:-]+ +ledger +redeliver +wang wei +account opened$'
    ctl order show DEAD1; says '^20[0-9TZ:-]+ +action +ledger +redeliver +event [0-9]+, by wang wei, account opened$'
    ctl order show DEAD1 --json; json '[.[] | select(.what == "action") | .actor] == ["wang wei"]'
    # by key; done ones too
    SUDO_USER=li LOGNAME=root run "$ctl" deliveries redeliver -c "$conf" --reason again \
        --consumer ledger --json webhook:alipay:DONE
    exits 0; silent
    json 'length == 1 and .[0] == {"action": "redeliver", "consumer": "ledger",
        "event": "webhook:alipay:DONE", "state": null, "count": 1, "actor": "li",
        "reason": "again", "error": null}'
    same "$(state_of ledger DONE)" retry
    LOGNAME=zhao run env -u SUDO_USER "$ctl" deliveries skip -c "$conf" "$(seq_of SKIP)" --reason 'test order'
    exits 0; says ': skipped for ledger$'
    ctl deliveries list --json; json 'all(.[]; .out_trade_no != "SKIP")'
    # given up is not handed over
    ctl deliveries show "$(seq_of SKIP)"; says '^ledger +skipped +[0-9]+ +- +test order$'; says 'zhao +test order$'
    ctl deliveries show "$(seq_of SKIP)" --json
    json '.[0].deliveries[0] | .state == "skipped" and .reason == "test order"'
    json '.[0].actions[-1] | .action == "skip" and .actor == "zhao" and .at'
    run env -u SUDO_USER -u LOGNAME "$ctl" deliveries redeliver -c "$conf" --state dead --reason 'all of them'
    exits 0; says '^1 dead event: once more to ledger$'
    same "$(sql "SELECT actor FROM paynotify.delivery_actions ORDER BY at" | paste -sd,)" "wang wei,li,zhao,$(id -un)"
    ctl deliveries skip --state dead --reason none; exits 0; says '^0 dead events: skipped for ledger$'
    ctl deliveries list --state dead --json; same "$out" ''
}

# One of several that cannot be done is told, and keeps none of the others back.
test_handoff__6_refusals_say_what_to_do() {
    ctl deliveries redeliver "$(seq_of LEASED)" 999999 "$(seq_of RETRY)" --reason now; exits 1
    complains 'being handed off at this moment.*lease ends'; complains 'no event "999999"'
    says "^$(seq_of RETRY): once more"; same "$(wc -l <<<"$out")" 1
    same "$(state_of ledger RETRY)" retry
    ctl deliveries redeliver "$(seq_of LEASED)" --reason now --json; exits 1
    json '.[0].count == 0 and (.[0].error | test("handed off"))'
    ctl deliveries redeliver "$(seq_of NEW)" --reason now; exits 1; complains 'not been claimed by "ledger" yet'
    ctl deliveries skip "$(seq_of SKIP)" --reason now; exits 1; complains 'nothing to skip'
    # what is in flight may be given up, and only that: whoever has it is told by his ack
    ctl deliveries skip "$(seq_of LEASED)" --reason now; exits 0; says ': skipped for ledger$'
    same "$(sql "SELECT * FROM paynotify.settle(ARRAY['$(token_of LEASED)'::uuid], '{done}', '{NULL}', '{NULL}')")" \
        "$(token_of LEASED)"
    # the two that are offered, and no more
    run "$ctl" deliveries skip --help; exits 0; says 'state STATE .*dead, or in retry'
    ! grep -qE 'leased|waiting' <<<"$out" || wrong 'states are offered that are refused'
    ctl deliveries redeliver 1 --reason now --consumer nobody; exits 1; complains 'there is ledger'
    # the role that reads may not act
    psql -qX -c 'CREATE ROLE looker LOGIN IN ROLE paynotify_reader'
    make_conf "$work/looker.conf" '[database]' "dsn = ${PN_DSN/user=paynotify/user=looker}"
    run "$ctl" deliveries list -c "$work/looker.conf" --json; exits 0; silent
    json 'length > 0'
    run "$ctl" deliveries show -c "$work/looker.conf" "$(seq_of RETRY)"; exits 0; silent
    run "$ctl" order show -c "$work/looker.conf" RETRY; exits 0; silent
    run "$ctl" deliveries skip -c "$work/looker.conf" "$(seq_of RETRY)" --reason x; exits 1
    complains 'permission denied.*\[database\] admin_dsn'
}

test_handoff__7_pause_holds_and_resume_goes_on() {
    ctl deliveries pause ledger; exits 2; complains 'needs --reason'
    ctl deliveries pause --reason x; exits 2; complains 'needs CONSUMER'
    ctl deliveries pause leger --reason x; exits 1; complains 'there is ledger'
    ctl deliveries pause ledger --reason 'month end' --actor chen; exits 0; silent; says '^ledger: paused$'
    same "$(claim ledger)" ''
    ctl consumers list; says '^ledger +pull +paused .* month end$'
    ctl consumers list --json; json '.[0].state == "paused" and .[0].reason == "month end"'
    ctl deliveries resume ledger --json; exits 0; silent
    json '.[0] | .action == "resume" and .consumer == "ledger" and .event == null and .count == 1'
    ctl consumers list --json; json '.[0].state == "active" and .[0].reason == null'
    [ "$(claim ledger | wc -l)" -gt 0 ] || wrong 'nothing is claimed after resume'
    same "$(sql "SELECT action || ':' || actor || ':' || reason FROM paynotify.delivery_actions
        WHERE action = 'pause'")" 'pause:chen:month end'
}

# With several consumers the wrong one must not be hit by leaving it out.
test_handoff__8_of_several_consumers_one_must_be_named() {
    register mail
    ctl deliveries redeliver "$(seq_of DONE)" --reason x; exits 2
    complains 'needs --consumer NAME, one of ledger, mail'
    ctl deliveries skip --state dead --reason x; exits 2; complains 'one of ledger, mail'
    claim mail >"$work/claimed"
    ctl deliveries skip "$(seq_of DONE)" --reason x --consumer mail; exits 0
    ctl consumers list --json; json '[.[].name] | sort == ["ledger", "mail"]'
    ctl deliveries list --consumer mail; exits 0
    same "$(grep -c '^ledger' <<<"$out")" 0
    ctl deliveries show "$(seq_of DONE)" --json; json '.[0].deliveries | map(.consumer) | sort == ["ledger", "mail"]'
}

# The question that every complaint begins with: what became of this order?
test_handoff__9_an_order_is_one_timeline() {
    run "$ctl" trigger -c "$conf" --account alipay/shop1 --out-trade-no T1 --retries 2 payment.succeeded; exits 0
    run "$ctl" trigger -c "$conf" --account wechat/shop1 --out-trade-no T1 payment.succeeded; exits 0
    sql "INSERT INTO paynotify.delivery_attempts SELECT now(), id, $(seq_of T1), 1, 'retry', 500, 12300,
        'status 500', 'oops', false FROM paynotify.consumers WHERE name = 'mail'"
    claim mail >"$work/claimed"
    settle "$(token_of T1 | head -1)" 'done' ''
    ctl order show T1; exits 0; silent
    says '^TIME +WHAT +WHO +RESULT +DETAIL$'
    says '^20[0-9TZ:-]+ +receipt +alipay/shop1 +recorded 200 +[0-9a-f-]{36}'
    says '^20[0-9TZ:-]+ +event +wechat/shop1 +payment.succeeded +event [0-9]+, 88\.88 CNY, evt_'
    says "^20[0-9TZ:-]+ +attempt +mail +retry 500 +event $(seq_of T1), attempt 1, status 500\$"
    says "^now +delivery +mail +done +event $(seq_of T1)\$"
    ctl order show T1 --json; exits 0; silent
    json '([.[].at | select(. != null)] | . == sort)
        and ([.[] | select(.what == "receipt")] | length == 4)
        and ([.[] | select(.what == "event") | .event.provider] | sort == ["alipay", "wechat"])
        and ([.[] | select(.what == "attempt")] | length == 1 and (.[0] | .status == 500 and .consumer == "mail"))
        and ([.[] | select(.what == "delivery")] | length == 4 and all(.[]; .at == null and .state))
        and .[-1].what == "delivery"'
    ctl order show T1 --tenant nobody; exits 1; complains 'order "T1"'
    ctl order show; exits 2; complains 'needs OUT_TRADE_NO'
    # Alipay tells of a refund what it brought the order to
    run "$ctl" trigger -c "$conf" --account alipay/shop1 --out-trade-no T2 --refund-amount 100 refund.succeeded; exits 0
    ctl order show T2; exits 0; says ' event +alipay/shop1 +refund.succeeded +event [0-9]+, total 1\.00 CNY, evt_'
}

# More rows than one block of a table, and the note that there are more.
test_handoff__a_long_lists_are_whole() {
    register many
    run "$ctl" trigger -c "$conf" --account alipay/shop1 --count 1100 --connections 8 payment.succeeded; exits 0
    sql "SELECT count(*) FROM paynotify.claim('many', 1000, interval '1 hour')" >/dev/null
    sql "SELECT count(*) FROM paynotify.claim('many', 1000, interval '1 hour')" >/dev/null
    ctl deliveries list --consumer many; exits 0; complains 'oldest 1000'
    same "$(grep -c '^[0-9]' <<<"$out")" 1000
    ctl deliveries list --consumer many --json --limit 0; exits 0; silent
    [ "$(wc -l <<<"$out")" -gt 1100 ] || wrong 'not all are listed'
    same "$(jq .seq <<<"$out" | sort -u | wc -l)" "$(wc -l <<<"$out")"
}

# An application that is no more must not be listed for ever, nor take what others
# have with it; one that is at work must not lose its leases.
test_handoff__b_a_consumer_is_removed() {
    local attempts
    ctl consumers remove mail; exits 2; complains 'needs --reason'
    ctl consumers remove --reason x; exits 2; complains 'needs CONSUMER'
    ctl consumers remove mial --reason x; exits 1; complains 'no consumer "mial"; there are ledger, mail, many'
    attempts=$(sql 'SELECT count(*) FROM paynotify.delivery_attempts')
    # what is still configured would come back, and be handed all of it again
    make_conf "$work/still.conf" '[database]' "dsn = $PN_DSN" '[deliver many]' 'url = http://127.0.0.1:1/' \
        'secret_file = whsec'
    (umask 077 && echo whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3 >"$work/whsec")
    run "$ctl" consumers remove many --reason gone -c "$work/still.conf"; exits 1; same "$out" ''
    complains 'still\.conf:3: the section \[deliver many\] is still there: .*all events again'
    ctl consumers remove many --reason 'gone'; exits 1; complains 'has events in hand: Stop it'; same "$out" ''
    sql "SELECT paynotify.nack(d.token) FROM paynotify.deliveries d JOIN paynotify.consumers c
        ON c.id = d.consumer_id WHERE c.name IN ('mail', 'many') AND d.state = 'leased'" >/dev/null
    ctl consumers remove many --reason 'the shop is closed' --actor chen; exits 0; silent; says '^many: removed$'
    ctl consumers remove mail --reason 'no mails' --json; exits 0; silent
    json '.[0] | .action == "remove" and .consumer == "mail" and .count == 1 and .error == null'
    ctl consumers list --json; json '[.[].name] == ["ledger"]'
    ctl deliveries list --consumer many; exits 1; complains 'no consumer "many"'
    same "$(sql 'SELECT count(*) FROM paynotify.delivery_attempts')" "$attempts"
    same "$(sql "SELECT actor || ': ' || reason FROM paynotify.delivery_actions WHERE action = 'remove'
        ORDER BY at LIMIT 1")" 'chen: many: the shop is closed'
    # what is left of it is on an order's timeline, without a name
    ctl order show T1; exits 0; silent
    # registered again it is new
    register many
    ctl consumers list --json; json '.[] | select(.name == "many") | .behind > 1100 and .retrying == 0'
}

# shellcheck disable=SC2046 # in order: later ones use what earlier ones recorded
run_tests $(declare -F | sed -n 's/^declare -f \(test_handoff__.*\)/\1/p')
