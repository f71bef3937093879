#!/bin/bash
# The keys of the idempotency guard as an operator sees them: what is listed and
# shown in each state, what release and forget do, and that among a great many
# webhook keys only the guard's are read.
set -u
# shellcheck source=tests/integration/cmd/lib.sh
. "$(dirname "$0")/lib.sh"
. tests/lib/pg.sh
finish() {
    pg_stop
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

pg_start || exit 1
make_keys
conf=$work/c.conf
make_conf "$conf" '[server]' 'listen = 127.0.0.1:1' '[database]' "dsn = $PN_DSN"

charges='POST /v1/charges' refunds='POST /v1/refunds'
ctl() { run "$ctl" "$1" "$2" -c "$conf" "${@:3}"; }
sql() { psql -qXAt -v ON_ERROR_STOP=1 -c "$1" || wrong "SQL failed: $1"; }
act() { sql "$1" >/dev/null; } # SELECT function(): what it returns is void
# claim TENANT ROUTE KEY [NAME => VALUE]...: outcome, attempt, token
claim() {
    local more
    printf -v more ', %s' "${@:4}"
    [ $# -gt 3 ] || more=
    sql "SELECT outcome || ' ' || coalesce(attempt::text, '') || ' ' || coalesce(token::text, '')
        FROM paynotify.guard_claim('$1', '$2', '$3', sha256('request')$more)"
}
token() { claim "$@" | cut -d' ' -f3; }
of_shop1() { ctl keys "$1" "$2" --tenant shop1 --route "$charges" "${@:3}"; }

test_keys__1_without_the_schema_db_migrate_is_named() {
    local more=(--tenant shop1 --route "$charges")
    ctl keys list; exits 1; complains 'paynotifyctl db migrate'
    ctl keys show k; exits 1; complains 'paynotifyctl db migrate'
    ctl keys release k "${more[@]}" --reason x; exits 1; complains 'paynotifyctl db migrate'
    ctl keys forget k "${more[@]}" --reason x; exits 1; complains 'paynotifyctl db migrate'
    ctl db migrate; exits 0
    ctl keys list; exits 0; same "$out" ''; complains '^no keys yet$'
    ctl keys list --json; exits 0; silent; same "$out" ''
    ctl keys show k; exits 1; complains 'no key "k".*keys list.*--tenant and --route'
}

# A mistyped filter must not look as if there were nothing to decide.
test_keys__2_usage_is_refused_before_anything_is_done() {
    run "$ctl" keys; exits 2; complains "keys release"
    ctl keys list --state dead; exits 2; complains 'none of PROCESSING, COMPLETED, FAILED'
    ctl keys list --route notify/alipay; exits 2; complains 'of webhooks.*events show'
    ctl keys list --tenant $'\xff'; exits 2; complains 'not UTF-8'
    ctl keys list k; exits 2; complains '"k" is one word too many'
    ctl keys show; exits 2; complains 'needs KEY'
    ctl keys show $'a\xc3'; exits 2; complains 'not UTF-8'
    for c in release forget; do
        ctl keys $c --tenant shop1 --route "$charges" --reason x; exits 2; complains 'needs KEY'
        ctl keys $c k --route "$charges" --reason x; exits 2; complains 'needs --tenant'
        ctl keys $c k --tenant shop1 --reason x; exits 2; complains 'needs --route'
        of_shop1 $c k; exits 2; complains 'needs --reason'
        of_shop1 $c k --reason ' '; exits 2; complains 'empty'
        ctl keys $c k --tenant shop1 --route notify/wechat --reason x; exits 2; complains 'of webhooks'
    done
    same "$(sql 'SELECT count(*) FROM paynotify.guard_actions')" 0
}

# Every state must be told from the others: what is at work is left alone, what is
# set aside is not.
test_keys__3_the_list_shows_every_state() {
    local t
    sql "INSERT INTO paynotify.idempotency_keys (tenant, request_path, key, request_hash, state, created_at,
        expires_at) SELECT 'shop' || i % 5, CASE i % 2 WHEN 0 THEN 'notify/alipay' ELSE 'notify/wechat' END,
        'webhook:' || i, '', 'COMPLETED', now(), now() + interval '72 h' FROM generate_series(1, 100000) i"
    sql 'ANALYZE paynotify.idempotency_keys'
    claim shop1 "$charges" held "lease => interval '1 hour'" >"$work/held"
    claim shop1 "$charges" crashed "lease => interval '1 ms'" >/dev/null
    t=$(token shop1 "$charges" again)
    act "SELECT paynotify.guard_release('shop1', '$charges', 'again', '$t', 'retry', 'status 503')"
    t=$(token shop1 "$charges" answered)
    act "SELECT paynotify.guard_complete('shop1', '$charges', 'answered', '$t', 201,
        E'Content-Type: application/json\nLocation: /v1/charges/7\n', '{\"id\": \"支付 7\"}')"
    t=$(token shop1 "$charges" aside)
    act "SELECT paynotify.guard_release('shop1', '$charges', 'aside', '$t', 'hold', E'status \x1b[31m502')"
    claim shop1 "$refunds" held >/dev/null
    claim zeta "$charges" held >/dev/null
    claim shop2 "$charges" other >/dev/null
    ctl keys list; exits 0; silent
    says '^TENANT +ROUTE +KEY +STATE +ATTEMPTS +CRASHES +CREATED +UNTIL +REASON$'
    says '^shop1 +POST /v1/charges +held +held +1 +0 +20[0-9TZ:-]+ +20[0-9TZ:-]+ +-$'
    says '^shop1 +POST /v1/charges +crashed +lease ended +1 +0 +20[0-9TZ:-]+ +20[0-9TZ:-]+ +-$'
    says '^shop1 +POST /v1/charges +again +free +1 +0 +20[0-9TZ:-]+ +- +status 503$'
    says '^shop1 +POST /v1/charges +answered +COMPLETED +1 +0 +20[0-9TZ:-]+ +20[0-9TZ:-]+ +-$'
    says '^shop1 +POST /v1/charges +aside +FAILED +1 +0 +20[0-9TZ:-]+ +- +status \\x1b\[31m502$'
    same "$(wc -l <<<"$out")" 9
    ctl keys list --json; exits 0; silent
    json 'length == 8 and all(.[]; .route | startswith("notify/") | not)
        and ([.[] | [.tenant, .route, .key]] | . == sort)
        and ([.[] | select(.tenant == "shop1" and .route == "POST /v1/charges") | .state + " " + (.lease // "-")]
            == ["PROCESSING free", "COMPLETED -", "FAILED -", "PROCESSING ended", "PROCESSING held"])'
    ctl keys list --state failed --json; json 'length == 1 and (.[0] | .key == "aside" and .lease == null
        and .lease_expires_at == null and .response_status == null and .reason == "status \u001b[31m502")'
    ctl keys list --state COMPLETED --json; json 'length == 1 and (.[0] | .key == "answered"
        and .response_status == 201 and .completed_at and .expires_at and .created_at and .locked_at)'
    ctl keys list --state PROCESSING --tenant shop1 --json; json 'length == 4'
    ctl keys list --tenant shop1 --json; json 'length == 6 and all(.[]; .tenant == "shop1")'
    ctl keys list --route "$charges" --json; json 'length == 7 and all(.[]; .route == "POST /v1/charges")'
    ctl keys list --route "$refunds" --tenant shop1 --json; json 'length == 1'
    ctl keys list --tenant shop; exits 0; same "$out" ''; complains '^no keys match$'
    ctl keys list --limit 3 --json; json '[.[].key] == ["again", "answered", "aside"]'
    # its upstream came to no answer: nobody is at work, as the gateway writes it down
    sql "UPDATE paynotify.idempotency_keys SET reason = 'no answer in time' WHERE key = 'other'"
    ctl keys list --tenant shop2; says '^shop2 +POST /v1/charges +other +unknown +1 +0 .* no answer in time$'
    ctl keys list --tenant shop2 --json; json '.[0].lease == "held" and .[0].reason == "no answer in time"'
    ctl keys show other; says '^state +unknown +\(nobody is at work, .* when the lease ends\)$'
    sql "UPDATE paynotify.idempotency_keys SET reason = NULL WHERE key = 'other'"
}

# The table is the webhooks' too: to list what is set aside must not read them.
test_keys__4_webhook_keys_are_skipped() {
    local plan statement
    while read -r statement values; do
        plan=$({
            cat src/store/statements/reader.sql
            printf ';\nPREPARE q AS '
            cat "src/store/statements/$statement.sql"
            printf ';\nEXPLAIN (ANALYZE, TIMING OFF, BUFFERS, FORMAT JSON) EXECUTE q(%s)' "$values"
        } | psql -qXAt -v ON_ERROR_STOP=1) || wrong "$statement: no plan"
        jq -e '.[0].Plan | [.. | objects | select(."Relation Name" == "idempotency_keys")] as $reads
            | ($reads | length > 0) and all($reads[]; ."Node Type" != "Seq Scan")
            and ."Shared Hit Blocks" + ."Shared Read Blocks" < 200' >/dev/null <<<"$plan" ||
            wrong "$statement reads too much: $plan"
    done <<'CASES'
guard_scopes '', '', NULL, NULL, NULL, 500
guard_scopes 'shop1', '', 'shop1', NULL, NULL, 500
guard_scopes '', '', NULL, NULL, 'held', 500
guard_keys 'shop1', 'POST /v1/charges', '', NULL, 500
guard_keys 'shop1', 'POST /v1/charges', '', 'FAILED', 500
guard_key 'shop1', 'POST /v1/charges', 'held', 1024
CASES
}

test_keys__5_one_key_is_shown_whole() {
    ctl keys show answered; exits 0; silent
    says '^tenant +shop1$'; says '^route +POST /v1/charges$'; says '^key +answered$'; says '^state +COMPLETED$'
    says '^attempts +1$'; says '^status +201$'; says '^header +Content-Type: application/json$'
    says '^header +Location: /v1/charges/7$'; says '^body +18 bytes$'; says '^\{"id": "支付 7"\}$'
    says "^request hash +$(printf request | sha256sum | cut -d' ' -f1)\$"
    ctl keys show answered --json; exits 0; silent
    json 'length == 1 and (.[0] | .response_headers == ["Content-Type: application/json", "Location: /v1/charges/7"]
        and .response_body_bytes == 18 and .response_body_head == "{\"id\": \"支付 7\"}" and .token == false
        and .archived == null and .actions == [] and .response_status == 201 and .expires_at and .completed_at)'
    ctl keys show again; says '^state +free +\(.*next request runs\)$'; says '^token +none$'; says '^reason +status 503$'
    ctl keys show crashed; says '^state +lease ended +\(its holder did not come back\)$'
    says '^lease ends +20'; says '^token +with its holder$'
    ctl keys show aside; says '^state +FAILED +\(set aside'; says '^reason +status \\x1b\[31m502$'
    # the token settles a key: it is nobody's but the holder's
    of_shop1 show held --json; json '.[0] | .token == true and .lease == "held"'
    grep -q "$(cut -d' ' -f3 "$work/held")" <<<"$out" && wrong 'the token is shown'
    # a long answer that is cut in a character, and one that is no text
    act "SELECT paynotify.guard_complete('shop2', '$charges', 'other', lease_token, 200, NULL,
        convert_to('x' || repeat('支', 1000), 'UTF8')) FROM paynotify.idempotency_keys WHERE key = 'other'"
    ctl keys show other; says '^body +3001 bytes, which begin with 1024:$'; says '^x支+$'
    sql "UPDATE paynotify.idempotency_keys SET response_body = convert_to(repeat('支', 1000), 'UTF8')
        WHERE key = 'other'"
    ctl keys show other; says '^body +3000 bytes, which begin with 1023:$'; says '^支+$'
    sql "UPDATE paynotify.idempotency_keys SET response_body = '\\xff00' WHERE key = 'other'"
    ctl keys show other; says '^\\xff\\x00$'
    ctl keys show other --json; json '.[0].response_body_bytes == 2'
}

# The same key of two tenants is two payments: none of them is guessed.
test_keys__6_of_several_one_must_be_named() {
    ctl keys show held; exits 1; same "$out" ''
    complains '3 keys are called "held": give --tenant and --route'
    complains '^  --tenant shop1 --route "POST /v1/charges"$'; complains '^  --tenant zeta --route "POST /v1/charges"$'
    ctl keys show held --tenant shop1; exits 1; complains '2 keys are called "held"'
    ctl keys show held --tenant zeta --json; exits 0; silent; json '.[0].tenant == "zeta"'
    ctl keys show held --route "$refunds" --json; exits 0; silent; json '.[0].route == "POST /v1/refunds"'
    ctl keys show held --tenant shop2; exits 1; complains 'no key "held"'
    ctl keys show webhook:6; exits 1; complains 'no key "webhook:6" among'
    of_shop1 show nothing; exits 1; complains 'no key "nothing" of "POST /v1/charges", tenant "shop1"; .*keys list'
}

# After release the next one runs, and who had the key cannot complete it.
test_keys__7_release_lets_the_next_one_run() {
    local t
    of_shop1 release aside --reason 'not charged: asked the provider' --actor 'wang wei'; exits 0; silent
    same "$out" 'shop1, POST /v1/charges, aside: free, the next request runs'
    ctl keys show aside; says '^20[0-9TZ:-]+ +release +wang wei +not charged: asked the provider$'
    ctl keys show aside --json; json '.[0] | .state == "PROCESSING" and .lease == "free" and .crashes == 0
        and (.actions | length == 1) and (.actions[0] | .action == "release" and .actor == "wang wei"
            and .reason == "not charged: asked the provider" and (.at | test("^20.*Z$")))'
    same "$(claim shop1 "$charges" aside | cut -d' ' -f1-2)" 'run 2'
    t=$(cut -d' ' -f3 "$work/held")
    SUDO_USER=li LOGNAME=root run "$ctl" keys release -c "$conf" held --tenant shop1 --route "$charges" \
        --reason 'host is gone' --json
    exits 0; silent
    json '. == [{"action": "release", "tenant": "shop1", "route": "POST /v1/charges", "key": "held", "actor": "li",
        "reason": "host is gone", "error": null}]'
    psql -qX -c "SELECT paynotify.guard_complete('shop1', '$charges', 'held', '$t', 200)" 2>"$work/lost" &&
        wrong 'the holder could complete'
    grep -q 'lease of key "held".* was lost' "$work/lost" || wrong 'the holder was told otherwise'
    ctl keys show held --tenant zeta --json; json '.[0] | .lease == "held" and .actions == []'
    of_shop1 release answered --reason x; exits 1
    complains 'key "answered" of "POST /v1/charges", tenant "shop1": it has its answer.*forget'; same "$out" ''
    of_shop1 release answered --reason x --json; exits 1; json 'length == 1 and (.[0].error | test("has its answer"))'
    of_shop1 release nothing --reason x; exits 1; complains 'key "nothing".*no such key; .*keys list'
    ctl keys release k --tenant "$(printf 't%.0s' {1..129})" --route "$charges" --reason x; exits 1
    complains 'a tenant has 1 to 128 bytes'
}

test_keys__8_forget_makes_it_as_if_it_had_never_come() {
    local digest pid
    digest=$(printf 'shop1\nPOST /v1/charges\nanswered' | sha256sum | head -c 32)
    coproc psql -qXAt
    pid=$COPROC_PID
    printf '%s\n' 'LISTEN paynotify_guard;' 'SELECT 1;' >&"${COPROC[1]}"
    read -r _ <&"${COPROC[0]}"
    of_shop1 forget answered --reason 'test charge' --actor chen; exits 0; silent
    same "$out" 'shop1, POST /v1/charges, answered: forgotten'
    # daemons that remember the answer are told
    printf '%s\n' 'SELECT 1;' '\q' >&"${COPROC[1]}"
    grep -q "\"paynotify_guard\" with payload \"$digest\"" <&"${COPROC[0]}" || wrong 'no daemon is told'
    wait "$pid"
    of_shop1 show answered; exits 1; same "$out" ''; complains 'no key "answered".*forget by chen at 20.*: test charge$'
    same "$(claim shop1 "$charges" answered "lease => interval '1 hour'" | cut -d' ' -f1-2)" 'run 1'
    of_shop1 forget answered --reason x; exits 1; complains 'somebody is at work under it.*lease ends at 20.*release'
    of_shop1 forget answered --reason x --json; exits 1; json '.[0].error | test("at work")'
    of_shop1 release answered --reason x; exits 0
    of_shop1 forget answered --reason x --json; exits 0; silent
    json '.[0] | .action == "forget" and .key == "answered" and .error == null'
    of_shop1 forget answered --reason x; exits 1; complains 'no such key; .*keys list'
    same "$(sql "SELECT string_agg(action, ',' ORDER BY at) FROM paynotify.guard_actions WHERE key = 'answered'")" \
        forget,release,forget
}

# Of an archived key only the digest is left, but it still keeps a repeat out.
test_keys__9_the_permanent_tier_is_told_and_forgotten() {
    local t
    t=$(token shop1 "$charges" old "ttl => interval '1 ms'")
    act "SELECT paynotify.guard_complete('shop1', '$charges', 'old', '$t', 200)"
    same "$(sql 'SELECT paynotify.archive_expired_keys(100)')" 1
    ctl keys list --state COMPLETED --tenant shop1; complains '^no keys match$'
    ctl keys show old; exits 0; says '^state +archived +\('; says '^permanent tier +first seen 20.*, attempts 1, request hash'
    of_shop1 show old --json; exits 0; silent
    json '.[0] | .state == null and .attempts == null and .created_at == null and .key == "old"
        and (.archived | .attempts == 1 and .first_seen_at and (.request_hash | length == 64))'
    # a life after that one: both are known
    same "$(claim shop1 "$charges" old | cut -d' ' -f1-2)" 'run 2'
    ctl keys show old --json; json '.[0] | .lease == "held" and .attempts == 2 and .archived.attempts == 1'
    of_shop1 release old --reason x; exits 0
    of_shop1 forget old --reason x; exits 0
    same "$(claim shop1 "$charges" old | cut -d' ' -f1-2)" 'run 1'
}

# Who reads may not act; an application's open transaction is waited for, not long.
test_keys__a_rights_and_locks_are_told() {
    local pid t
    psql -qX -c 'CREATE ROLE looker LOGIN IN ROLE paynotify_reader'
    psql -qX -c 'CREATE ROLE owner LOGIN IN ROLE paynotify_owner'
    make_conf "$work/looker.conf" '[database]' "dsn = ${PN_DSN/user=paynotify/user=looker}"
    make_conf "$work/owner.conf" '[database]' "dsn = ${PN_DSN/user=paynotify/user=looker}" \
        "admin_dsn = ${PN_DSN/user=paynotify/user=owner}"
    run "$ctl" keys list -c "$work/looker.conf" --json; exits 0; silent; json 'length > 0'
    run "$ctl" keys show -c "$work/looker.conf" crashed; exits 0; silent
    for c in release forget; do
        run "$ctl" keys $c -c "$work/looker.conf" crashed --tenant shop1 --route "$charges" --reason x; exits 1
        complains 'permission denied.*owner of the tables.*\[database\] admin_dsn'; same "$out" ''
    done
    run "$ctl" keys release -c "$work/owner.conf" crashed --tenant shop1 --route "$charges" --reason x; exits 0; silent
    sql "ALTER FUNCTION paynotify.guard_set_free(text, text, text, text, text) SET lock_timeout = '100ms'"
    coproc psql -qXAt
    pid=$COPROC_PID
    printf '%s\n' 'BEGIN;' "SELECT outcome FROM paynotify.guard_claim('shop1', '$charges', 'crashed', sha256('request'));" \
        >&"${COPROC[1]}"
    read -r t <&"${COPROC[0]}"
    same "$t" run
    of_shop1 release crashed --reason x; exits 1; complains 'key "crashed".*transaction that is open at this moment'
    echo 'COMMIT; \q' >&"${COPROC[1]}"
    wait "$pid"
    of_shop1 release crashed --reason x; exits 0
}

# More keys than one page, more routes than one page.
test_keys__b_long_lists_are_whole() {
    sql "SELECT count(paynotify.guard_claim('many', '$charges', 'k' || i, sha256('r')))
        FROM generate_series(1, 1203) i" >/dev/null
    sql "SELECT count(paynotify.guard_claim('t' || i, '$charges', 'one', sha256('r')))
        FROM generate_series(1, 601) i" >/dev/null
    ctl keys list --tenant many; exits 0; complains 'first 1000; --limit N'
    same "$(grep -c '^many' <<<"$out")" 1000
    ctl keys list --tenant many --json; exits 0; silent # all of them
    same "$(jq -r .key <<<"$out" | sort -u | wc -l)" 1203
    ctl keys list --json --limit 0; exits 0; silent
    same "$(jq -r 'select(.key == "one") | .tenant' <<<"$out" | sort -u | wc -l)" 601
    same "$(jq -c '[.tenant, .route, .key]' <<<"$out" | sort | uniq -d)" ''
    ctl keys list --limit 1100 --tenant many --route "$charges" --json; same "$(wc -l <<<"$out")" 1100
    ctl keys show one; exits 1; complains '601 keys are called "one"'; same "$(grep -c -- '--tenant t' <<<"$err")" 64
}

# shellcheck disable=SC2046 # in order: later ones use what earlier ones made
run_tests $(declare -F | sed -n 's/^declare -f \(test_keys__.*\)/\1/p')
