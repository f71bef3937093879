#!/bin/bash
# paynotifyctl without a database and without a daemon: usage, help and manual,
# config check, verify, trigger's refusals and captures.
set -u
# shellcheck source=tests/integration/cmd/lib.sh
. "$(dirname "$0")/lib.sh"
trap 'rm -rf "$work"' EXIT
make_keys
conf=$work/c.conf
make_conf "$conf"

commands() { "$ctl" --help | sed -n '/^$/,/^$/s/^  \([a-z -]*[a-z]\)  *.*/\1/p' |
    sed 's/  .*//' | grep .; }

# A script that misspells a command must not go on as if it had worked.
test_cmd__usage_errors_exit_2_and_say_where_help_is() {
    run "$ctl"; exits 2; complains 'usage: paynotifyctl COMMAND'
    run "$ctl" evnts; exits 2; complains 'unknown command "evnts".*--help'
    run "$ctl" -c "$conf" events list; exits 2; complains 'command comes first'
    run "$ctl" events; exits 2; complains 'needs a word behind it'; complains 'events list'
    run "$ctl" events lst; exits 2; complains 'no "events lst"'
    run "$ctl" config check --nonsense; exits 2; complains 'unknown option "--nonsense"'
    run "$ctl" config check -x; exits 2; complains 'unknown option "-x"'
    run "$ctl" config check extra; exits 2; complains '"extra" is one word too many'
    run "$ctl" config check -c; exits 2; complains 'needs a value'
    run "$ctl" verify -c "$conf" x; exits 2; complains 'needs --account'
    run "$ctl" verify -c "$conf" --account alipay/shop1; exits 2; complains 'needs CAPTURE'
    run "$ctl" verify -c "$conf" --account alipay "$conf"; exits 2; complains 'PROVIDER/TENANT'
    run "$ctl" verify -c "$conf" --account paypal/x "$conf"; exits 2; complains 'no provider "paypal"'
    run "$ctl" trigger -c "$conf" --account alipay/shop1; exits 2; complains 'needs EVENT'
    run "$ctl" replay -c "$conf"; exits 2; complains 'needs CAPTURE'
    run "$ctl" replay --to http://127.0.0.1:1/notify "$conf"; exits 2; complains 'without its path'
    run "$ctl" events list -c "$conf" --since tomorrow; exits 2; complains '24h'
    run "$ctl" events list -c "$conf" --limit -1; exits 2; complains 'from 0 to'
    run "$ctl" events show -c "$conf"; exits 2; complains 'needs ID'
    # what later releases bring is refused, not ignored
    for c in doctor 'quarantine accept' tenants 'keys import'; do
        # shellcheck disable=SC2086
        run "$ctl" $c; exits 2
    done
    same "$out" ''
}

test_cmd__output_that_is_lost_is_told_once() {
    local c
    for c in --version 'stats --help' "config check -c $conf"; do
        # shellcheck disable=SC2086
        err=$("$ctl" $c 2>&1 >/dev/full); status=$?; exits 1
        same "$err" 'paynotifyctl: could not write to standard output: No space left on device'
    done
}

test_cmd__version_and_help_exit_0_on_stdout() {
    local c
    run "$ctl" --version; exits 0; silent; says '^paynotifyctl [0-9]+\.[0-9]+\.[0-9]+$'
    run "$ctl" --help; exits 0; silent; says 'config check'
    run "$ctl" events --help; exits 0; silent; says 'events tail'
    same "$(commands | wc -l)" 29
    # what is required stands before what is not
    run "$ctl" keys release --help
    says '^usage: paynotifyctl keys release --tenant NAME --route ROUTE --reason TEXT \[OPTION\.\.\.\] KEY$'
    run "$ctl" replay --help; says '^ *--to URL +http://host:port or unix:/path '
    run "$ctl" stats --help; says '^usage: paynotifyctl stats \[OPTION\.\.\.\] \[--watch \[SECONDS\]\]$'
    while read -r c; do
        # shellcheck disable=SC2086
        run "$ctl" $c --help; exits 0; silent
        says "^usage: paynotifyctl $c "; says '-c, --config FILE'; says '--json'
    done < <(commands)
}

# Whoever adds a command or an option is told here to write it down.
test_cmd__the_manual_has_every_command_and_option() {
    local c o page line=$'[^\n]*'
    page=$'\n'$(<"$top/src/cmd/man/paynotifyctl.1") # a grep each would be a process each
    while read -r c; do
        [[ $page =~ $'\n'\.(Cm|Ss)\ ($line(, |\| ))?$c ]] || wrong "paynotifyctl.1 lacks: $c"
        # shellcheck disable=SC2086
        for o in $("$ctl" $c --help | sed -n 's/^ *\(-[a-z], \)\{0,1\}--\([a-z-]*\).*/\2/p'); do
            [[ $page =~ Fl\ -$o([^a-z-]|$) ]] || wrong "paynotifyctl.1 lacks: --$o of $c"
        done
    done < <(commands)
}

# What a command must be given, for it to get as far as its configuration.
args_of() {
    case $1 in
    verify) echo --account alipay/shop1 c ;;
    trigger) echo --account alipay/shop1 payment.succeeded ;;
    replay) echo "$conf" ;;
    'evidence verify') echo --all ;;
    'events show' | 'quarantine show' | 'deliveries show' | 'order show' | 'keys show' | 'deliveries resume') echo 1 ;;
    'consumers remove' | 'deliveries redeliver' | 'deliveries skip' | 'deliveries pause') echo 1 --reason x ;;
    'keys release' | 'keys forget') echo 1 --tenant t --route r --reason x ;;
    esac
}

# Scripts go by the exit code: every command means the same by it.
test_cmd__every_command_has_the_same_exit_codes() {
    local c args n=0
    make_conf "$work/away.conf" '[server]' 'listen = 127.0.0.1:1' '[database]' 'dsn = host=/nothing'
    while read -r c; do
        read -ra args < <(args_of "$c")
        # shellcheck disable=SC2086
        {
            run "$ctl" $c -c "$conf" "${args[@]}" --nonsense; exits 2; complains 'unknown option "--nonsense"'
            run "$ctl" $c -c "$conf" "${args[@]}" --config; exits 2; complains 'needs a value'
            [ ${#args[@]} = 0 ] || { run "$ctl" $c -c "$conf"; exits 2; complains "usage: paynotifyctl $c "; }
            run "$ctl" $c -c "$conf" --json=1; exits 2; complains 'takes no value'
            [ "$c" = support-bundle ] || {
                run "$ctl" $c -c "$work/none.conf" "${args[@]}"; exits 78; complains 'none\.conf'
                same "$out" ''
            }
        }
        n=$((n + 1))
        case $c in 'config check' | verify | trigger | replay | support-bundle | 'tenants list') continue ;; esac
        # shellcheck disable=SC2086
        run "$ctl" $c -c "$work/away.conf" "${args[@]}"; exits 1; same "$out" ''
        complains 'database host=/nothing: could not connect.*; Is the server running.*start PostgreSQL or mend'
    done < <(commands)
    same "$n" "$(commands | wc -l)"
}

# What a command knows beforehand is told beforehand, whatever the database does.
test_cmd__unknown_words_are_usage_errors() {
    local args wanted
    while IFS='|' read -r args wanted; do
        read -ra args <<<"$args"
        run "$ctl" "${args[@]}" -c "$work/away.conf"; exits 2; complains "$wanted"; same "$out" ''
        complains '^usage: paynotifyctl .*--help'
    done <<'LIST'
receipts list --verdict nonsense|none of recorded, duplicate
receipts list --provider paypal|no provider "paypal"; there are alipay, wechat
quarantine list --state nonsense|none of open, accepted
quarantine list --provider paypal|no provider "paypal"
quarantine show nonsense|is no ID
deliveries list --state nonsense|none of leased, waiting
deliveries skip --reason x|needs EVENT, or --state dead
deliveries redeliver --reason x --state leased|dead or retry
deliveries redeliver --reason x --state dead 1|not both
keys list --state nonsense|none of PROCESSING, COMPLETED, FAILED
keys show --route notify/alipay 1|not the guard's
keys forget --tenant t --route notify/alipay --reason x 1|not the guard's
evidence verify|needs events
stats 5|is for --watch
LIST
}

# complete WORD...: what the shell offers for the last one.
complete_words() {
    COMP_WORDS=("$ctl" "$@") COMP_CWORD=$# COMPREPLY=()
    _paynotifyctl "$ctl" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    printf '%s\n' "${COMPREPLY[@]}" | sort
}

# What is offered must be what there is, no more and no less.
test_cmd__completion_offers_commands_options_and_accounts() {
    local c words
    complete() { :; }
    compopt() { :; }
    # shellcheck source=systemd/paynotifyctl.bash
    . "$top/systemd/paynotifyctl.bash"
    unset -f complete
    same "$(complete_words '')" "$({ commands | cut -d' ' -f1; printf '%s\n' --help --version; } | sort -u)"
    same "$(complete_words sup)" support-bundle
    same "$(complete_words events '')" "$(printf '%s\n' list show tail)"
    same "$(complete_words quarantine sh)" show
    while read -r c; do
        read -ra words <<<"$c"
        same "$(complete_words "${words[@]}" --)" "$("$ctl" "${words[@]}" --help |
            sed -n 's/^  \(-[a-z], \|    \)\(--[a-z-]*\).*/\2/p' | sort)"
    done < <(commands)
    same "$(complete_words trigger -c "$conf" --account '')" \
        "$(printf '%s\n' alipay/live alipay/shop1 wechat/hmac wechat/shop1)"
    same "$(complete_words verify -c "$conf" --account wechat/h)" wechat/hmac
    same "$(complete_words support-bundle --output "$work/c.c")" "$work/c.conf"
    unset -f compopt
}

test_cmd__config_check_says_ok_or_where_it_is_wrong() {
    run "$ctl" config check -c "$conf"; exits 0; silent; same "$out" 'configuration OK: 4 accounts'
    run "$ctl" config check -c "$conf" --json; exits 0
    json '.[0] == {"ok": true, "error": null, "accounts": 4, "endpoints": 0, "routes": 0, "warnings": null}'
    make_conf "$work/bad.conf" '[server]' 'threds = 1'
    run "$ctl" config check -c "$work/bad.conf"; exits 78; same "$out" ''
    complains 'bad\.conf:2: .*threds'
    run "$ctl" config check --json -c "$work/bad.conf"; exits 78
    json '.[0].ok == false and (.[0].error | test("bad.conf:2"))'
    run "$ctl" config check -c "$work/none.conf"; exits 78; complains 'none\.conf'
    # a key that cannot be parsed is found here, not by the first notification
    mkdir -p "$work/broken" && cp -r "$work/keys" "$work/broken/" && cp "$conf" "$work/broken/c.conf"
    echo 'not a key' >"$work/broken/keys/alipay_public.pem"
    run "$ctl" config check -c "$work/broken/c.conf"; exits 78; complains 'c\.conf:[0-9]+: '
    # every other command says the same
    for c in 'db migrate' 'db status' 'events list' 'events tail' 'events show 1' 'receipts list' \
        'consumers list' 'deliveries list' 'deliveries show 1' 'deliveries skip 1 --reason x' \
        'deliveries redeliver 1 --reason x' 'deliveries pause x --reason x' 'deliveries resume x' \
        'order show 1' 'replay c' 'trigger --account alipay/shop1 payment.succeeded' \
        'verify --account alipay/shop1 c'; do
        # shellcheck disable=SC2086
        run "$ctl" $c -c "$work/none.conf"; exits 78; complains 'none\.conf'
    done
}

# What makes an account useless without being wrong is said before it is missed.
test_cmd__config_check_doubts_what_is_hardly_meant() {
    openssl req -x509 -key "$work/keys/wechat_private.pem" -days 5 -subj /CN=soon \
        -out "$work/keys/soon.pem" 2>/dev/null
    chmod 600 "$work/keys/soon.pem"
    sed 's,keys/platform,keys/soon,' "$conf" >"$work/soon.conf" && chmod 600 "$work/soon.conf"
    run "$ctl" config check -c "$work/soon.conf"; exits 0; same "$out" 'configuration OK: 4 accounts'
    complains 'soon\.conf:16: platform_cert .*soon\.pem: the certificate ends 20.*Z: add its successor'
    same "$(wc -l <<<"$err")" 1
    run "$ctl" config check -c "$work/soon.conf" --json; exits 0
    json '.[0].ok and (.[0].warnings | test("soon.conf:16: platform_cert"))'
    run "$bin/paynotifyd" --check -c "$work/soon.conf"; exits 0; complains 'the certificate ends'
    # Alipay goes on with a key whose certificate has ended
    openssl req -new -key "$work/keys/alipay_private.pem" -subj /CN=ended -out "$work/keys/ended.csr" 2>/dev/null
    openssl x509 -req -in "$work/keys/ended.csr" -signkey "$work/keys/alipay_private.pem" -days -1 \
        -out "$work/keys/ended.pem" 2>/dev/null
    chmod 600 "$work/keys/ended.pem"
    sed 's,keys/\(alipay_public\|platform\),keys/ended,' "$conf" >"$work/ended.conf" && chmod 600 "$work/ended.conf"
    run "$ctl" config check -c "$work/ended.conf"; exits 0
    complains 'ended\.conf:5: public_key .*ended\.pem: the certificate ended 20.*Z: it goes on verifying'
    complains 'ended\.conf:16: platform_cert .*ended\.pem: the certificate ended 20.*Z: what it signs is refused'
    same "$(wc -l <<<"$err")" 3
    sed 's,keys/\(alipay\|wechat\)_private,keys/stranger_private,; /^platform_cert/d' "$conf" >"$work/odd.conf"
    chmod 600 "$work/odd.conf"
    run "$ctl" config check -c "$work/odd.conf"; exits 0
    complains 'odd\.conf:7: test_private_key .*belongs to no key of \[alipay shop1\]: .*trigger'
    complains 'odd\.conf:[0-9]*: test_private_key .*belongs to no key of \[wechat shop1\]: .*APIv3'
    : >"$work/empty.conf" && chmod 600 "$work/empty.conf"
    run "$ctl" config check -c "$work/empty.conf"; exits 0
    same "$err" "paynotifyctl: $work/empty.conf: no account: nothing is received; add a section [alipay NAME] or [wechat NAME]"
}

# Which accounts there are, and when a certificate ends, without opening files.
test_cmd__tenants_are_listed_with_their_keys() {
    run "$ctl" tenants list -c "$conf"; exits 0; silent
    says '^ACCOUNT +NUMBER +TEST +KIND +KEY +FINGERPRINT +ENDS$'
    says '^alipay/shop1 +2088000000000001 +yes +key +- +[0-9a-f]{16} +-$'
    says '^alipay/live +2021000000000002 +no +key '
    says '^wechat/shop1 +1900000001 +yes +key +PUB_KEY_ID_0000000000000000000001 +[0-9a-f]{16} +-$'
    says '^wechat/shop1 +1900000001 +yes +certificate +[0-9A-F]+ +[0-9a-f]{16} +20[0-9]{2}-.*Z$'
    says '^wechat/hmac +1900000002 +yes +secret +- +[0-9a-f]{16} +-$'
    run "$ctl" tenants list -c "$conf" --json; exits 0
    json 'length == 4 and (.[] | select(.tenant == "shop1" and .provider == "wechat") | .test and .number ==
        "1900000001" and .app_ids == ["wx0000000000000001"] and ([.keys[].kind] == ["key", "certificate", "secret"])
        and all(.keys[]; .fingerprint | length == 64) and .keys[1].ends_at)'
    for secret in v2 v3; do
        grep -q "$(<"$work/keys/$secret.key")" <<<"$out" && wrong 'a secret is shown'
    done
    run "$ctl" tenants list -c "$work/none.conf"; exits 78
}

# What the daemon will not start with passes the check, or is said otherwise; or
# a piece of a password is quoted.
test_cmd__config_check_and_the_daemon_say_the_same() {
    local line place said
    while IFS='|' read -r section line place; do
        make_conf "$work/wrong.conf" "$section" "$line"
        run "$bin/paynotifyd" --check -c "$work/wrong.conf"; exits 78; said=$err
        run "$ctl" config check -c "$work/wrong.conf"; exits 78
        same "paynotifyctl: $said" "$err"
        complains "wrong\.conf:2: $place"
        grep -q 'geh\|eim' <<<"$err" && wrong 'a piece of the password is shown'
        [[ "$section" != '[database]' ]] || {
            run "$ctl" events list -c "$work/wrong.conf"; exits 78
            same "paynotifyctl: $said" "$err"
            run timeout 20 "$bin/paynotifyd" -c "$work/wrong.conf"; exits 78; same "$err" "$said"
        }
    done <<'LIST'
[admin]|listen = 0.0.0.0:8601|listen
[server]|listen = nonsense|listen
[database]|dsn = host=/nothing password=geh eim|dsn: not a connection string.*single quotes
[database]|dsn = 'geheim|dsn: not a connection string
[database]|dsn = host=/nothing geheim=1|dsn: not a connection string
[database]|dsn = hostt=/nothing password=geheim|dsn: not .*no option "hostt"; did you mean "host"\?
[database]|dsn = host=/nothing password=geheim database=eim|dsn: .*no option "database"; did you mean "dbname"\?
[database]|dsn = geheim|dsn: not a connection string
[database]|dsn = host=/nothing port=geheim|dsn: its port
[database]|dsn = host=/nothing connect_timeout=geheim|dsn: its connect_timeout
[database]|dsn = postgresql://u:geh@eim@db/x|dsn: its host holds
[database]|dsn = postgresql://u:geh/eim@db/x|dsn: its (port|dbname)
[database]|dsn = postgresql://u:1/eim@db/x|dsn: its dbname
[database]|dsn = postgresql://u:geh%zzeim@db/x|dsn: not a connection URI.*%40
[database]|admin_dsn = host=/nothing password=geh eim|admin_dsn: not a connection string
LIST
    # and what is right passes
    while read -r line; do
        make_conf "$work/right.conf" '[database]' "dsn = $line"
        run "$ctl" config check -c "$work/right.conf"; exits 0
        run "$bin/paynotifyd" --check -c "$work/right.conf"; exits 0
    done <<'LIST'
host=a,b port=5432,5433 dbname=x target_session_attrs=read-write connect_timeout=3
host=a,b port=,5433 password='geh eim' keepalives_idle=-1
postgresql://u:geh%40eim@db:5432/x?sslmode=require
postgres://u@[::1],h2:5433/x
postgresql://u:geh?eim@db/x
postgresql:///x?host=/run/postgresql&port=6432
host=@abstract dbname=x user=a@b
LIST
}

# The sample is what a newcomer starts from; with his keys in place it must load,
# as it is and with every option uncommented, but for those of which there is one
# of three.
test_cmd__the_sample_configuration_loads() {
    local d=$work/sample
    mkdir -p "$d/conf.d"
    cp "$work/keys/alipay_public.pem" "$d/alipay_public.pem"
    cp "$work/keys/alipay_private.pem" "$d/alipay_test_private.pem"
    cp "$work/keys/wechat_public.pem" "$d/wechat_public.pem"
    cp "$work/keys/wechat_private.pem" "$d/wechat_test_private.pem"
    cp "$work/keys/platform.pem" "$d/wechat_platform.pem"
    cp "$work/keys/v3.key" "$d/wechat_api_v3.key"
    cp "$work/keys/v2.key" "$d/wechat_api_v2.key"
    cp "$work/keys/platform.pem" "$d/app_ca.pem"
    printf 'whsec_%s\n' "$(head -c 32 /dev/zero | base64)" >"$d/app_webhook.secret"
    cp "$work/keys/platform.pem" "$d/upstream_ca.pem"
    openssl rand -hex 32 >"$d/admin_token"
    chmod 600 "$d"/admin_token "$d"/*.pem "$d"/*.key "$d"/*.secret
    cp "$top/src/conf/paynotifyd.conf.sample" "$d/as_is.conf"
    sed -E '/^;(tenant_header|api_keys) = /d; s/^;([a-z_0-9]+ = )/\1/; s/^test = no/test = yes/' \
        "$d/as_is.conf" >"$d/all.conf"
    chmod 600 "$d"/*.conf
    grep -q '^;[a-z_0-9]* = ' "$d/all.conf" && wrong 'an option is still commented out'
    run "$ctl" config check -c "$d/as_is.conf"; exits 0; same "$out" 'configuration OK: 2 accounts, 1 endpoint, 1 guarded route'
    run "$ctl" config check -c "$d/all.conf"; exits 0; same "$out" 'configuration OK: 2 accounts, 1 endpoint, 1 guarded route'
}

# Only test accounts may be signed for.
test_cmd__trigger_refuses_live_accounts() {
    run "$ctl" trigger -c "$conf" --account alipay/live payment.succeeded --out "$work/live.http"
    exits 1; complains 'test = yes'; complains 'test_private_key'
    [ ! -e "$work/live.http" ] || wrong 'a capture was written'
    run "$ctl" trigger -c "$conf" --account alipay/live --sign-key "$work/keys/stranger_private.pem" \
        payment.succeeded --out "$work/live.http"
    exits 1
    run "$ctl" trigger -c "$conf" --account alipay/nobody payment.succeeded; exits 78; complains 'nobody'
}

test_cmd__trigger_refuses_what_it_cannot_make() {
    local wanted account args
    while IFS='|' read -r wanted account args; do
        read -ra args <<<"$args"
        run "$ctl" trigger -c "$conf" --account "$account" --out "$work/x.http" "${args[@]}"
        exits 2; complains "$wanted"; complains '^usage: paynotifyctl trigger'
        [ ! -e "$work/x.http" ] || wrong 'a capture was written'
    done <<'LIST'
payment\.nonsense.*payment\.succeeded|alipay/shop1|payment.nonsense
no event "wechat\.x"|alipay/shop1|wechat.x
no sample of event "payment\.nonsense"|wechat/shop1|payment.nonsense
no oddity "nonsense"; there are: bad-amount|alipay/shop1|payment.succeeded --oddity nonsense
no oddity "nonsense": there are bad-amount|wechat/shop1|payment.succeeded --oddity nonsense
cannot be made of this event|wechat/shop1|refund.succeeded --oddity combined
alipay has no dialects|alipay/shop1|payment.succeeded --dialect v2
no dialect "v4"|wechat/shop1|payment.succeeded --dialect v4
no such charset|alipay/shop1|payment.succeeded --charset nonsense
wechat has no charsets|wechat/shop1|payment.succeeded --charset GBK
more than the amount|alipay/shop1|refund.succeeded --amount 1 --refund-amount 2
more than the amount|wechat/shop1|refund.succeeded --amount 1 --refund-amount 2
must be a folder|alipay/shop1|payment.succeeded --count 2
none\.pem|alipay/shop1|payment.succeeded --sign-key none.pem
--connections is for sending|alipay/shop1|payment.succeeded --connections 2
LIST
    # once, before anything is sent
    run "$ctl" trigger -c "$conf" --account alipay/shop1 payment.nonsense --count 50 --connections 9
    exits 2; same "$(wc -l <<<"$err")" 2
    run "$ctl" trigger -c "$conf" --account alipay/shop1 payment.succeeded --sign-key "$conf"
    exits 2; complains 'c\.conf'
    run "$ctl" trigger -c "$conf" --account alipay/shop1 payment.succeeded --to ftp://x
    exits 2; complains 'http://host:port'
    # what the account has not is no usage error
    run "$ctl" trigger -c "$conf" --account wechat/hmac payment.succeeded --dialect v3
    exits 1; complains 'no public_key or platform_cert'
    run "$ctl" trigger -c "$conf" --account alipay/shop1 payment.succeeded --to http://127.0.0.1:1
    exits 1; complains 'is the daemon running'
    run "$ctl" trigger -c "$conf" --account alipay/shop1 payment.succeeded --count 50 --connections 5 \
        --to http://127.0.0.1:1
    exits 1; same "$(grep -c 'is the daemon running' <<<"$err")" 1
}

# A program that offers oddities would offer them without what they do.
test_cmd__trigger_lists_events_and_oddities() {
    run "$ctl" trigger -c "$conf" --account wechat/shop1 --list; exits 0; silent
    says '^  payment\.succeeded$'; says '^  stale +[a-z].*401'
    run "$ctl" trigger -c "$conf" --account wechat/shop1 --list --json; exits 0; silent
    json 'all(.[]; (.event and (has("what") | not)) or (.oddity and .what))
        and any(.[]; .oddity == "stale" and (.what | test("401")))'
}

capture() { # file args...
    local file=$1
    shift
    run "$ctl" trigger -c "$conf" --out "$file" "$@"
    exits 0
}

# Each sample of each provider verifies, and is what was asked for.
test_cmd__every_event_is_made_and_verifies() {
    local account event options wanted made
    while read -r wanted account options; do
        made=0
        for event in $("$ctl" trigger -c "$conf" --account "$account" --list --json | jq -r '.event // empty'); do
            # shellcheck disable=SC2086
            run "$ctl" trigger -c "$conf" --account "$account" $options "$event" --out "$work/e.http"
            if [ "$status" = 2 ]; then # not in this dialect: said so
                complains "\"$event\" in this dialect"
                continue
            fi
            exits 0
            made=$((made + 1))
            run "$ctl" verify -c "$conf" --account "$account" --json "$work/e.http"; exits 0
            json --arg e "$event" '.[0].verdict == "accepted" and .[0].reason == ""
                and ([.[0].events[].type] | index($e) != null)
                and all(.[0].events[]; .seq == null and .received_at == null
                    and .livemode == false and .schema == 1 and (.id | test("^evt_[0-9a-f]{32}$")))'
        done
        same "$account $options: $made events" "$account $options: $wanted events"
    done <<LIST
9 alipay/shop1
9 alipay/shop1 --charset GBK
9 wechat/shop1
7 wechat/shop1 --dialect v3
6 wechat/shop1 --dialect v2
6 wechat/hmac
6 wechat/hmac --dialect v2-hmac
LIST
}

test_cmd__trigger_puts_in_what_it_is_given() {
    capture "$work/a.http" --account alipay/shop1 --out-trade-no ORDER-1 --amount 12345 payment.succeeded
    run "$ctl" verify -c "$conf" --account alipay/shop1 --json "$work/a.http"; exits 0
    json '.[0].events[0] | .out_trade_no == "ORDER-1" and .amount == 12345 and .order_amount == 12345
        and .currency == "CNY" and .key == "webhook:alipay:ORDER-1" and .refund == null
        and .account == "2088000000000001" and .tenant == "shop1" and .payload.total_amount == "123.45"'
    capture "$work/w.http" --account wechat/shop1 --out-trade-no ORDER-1 --amount 500 \
        --refund-amount 200 refund.succeeded
    run "$ctl" verify -c "$conf" --account wechat/shop1 --json "$work/w.http"; exits 0
    json '.[0].events[0] | .amount == 200 and .order_amount == 500 and .out_trade_no == "ORDER-1"'
    # the same seed, the same ids; without one, new ids
    capture "$work/1.http" --account wechat/shop1 --seed 5 payment.succeeded
    capture "$work/2.http" --account wechat/shop1 --seed 5 payment.succeeded
    capture "$work/3.http" --account wechat/shop1 payment.succeeded
    for i in 1 2 3; do
        "$ctl" verify -c "$conf" --account wechat/shop1 --json "$work/$i.http" |
            jq -r '.events[0].key' >"$work/$i.key"
    done
    same "$(<"$work/1.key")" "$(<"$work/2.key")"
    cmp -s "$work/1.key" "$work/3.key" && wrong 'two runs made the same ids'
}

# What duplicates and retries are: the same bytes; the same event, signed anew.
test_cmd__duplicates_are_bytes_and_retries_are_signed_anew() {
    local f=$work/folder account
    for account in alipay/shop1 wechat/shop1; do
        rm -rf "$f" && mkdir "$f"
        run "$ctl" trigger -c "$conf" --account $account --count 2 --duplicates 1 --retries 2 \
            payment.succeeded --out "$f" --json
        exits 0; json 'length == 8 and all(.[]; .file)'
        same "$(find "$f" -name '*.http' | wc -l)" 8
        cmp -s "$f"/*00001-first.http "$f"/*00001-duplicate1.http || wrong 'a duplicate has other bytes'
        cmp -s "$f"/*00001-first.http "$f"/*00001-retry1.http && wrong 'a retry has the same bytes'
        cmp -s "$f"/*00001-retry1.http "$f"/*00001-retry2.http && wrong 'two retries have the same bytes'
        same "$(for c in "$f"/*.http; do
            "$ctl" verify -c "$conf" --account $account --json "$c" | jq -r '.events[0].id'
        done | sort | uniq -c | awk '{print $1}' | paste -sd' ')" '4 4'
    done
}

# verify's verdict for each oddity; live.sh has the daemon's replies to them.
test_cmd__every_oddity_gets_its_verdict() {
    local account oddity wanted got
    declare -A verdicts=(
        [bad-amount]=accepted [gbk]=accepted [partner]=accepted [combined]=accepted
        [tampered]=bad_signature [wrong-key]=bad_signature [sha1]=bad_signature [probe]=bad_signature
        [no-sign]=malformed [duplicate-field]=malformed [no-headers]=malformed
        [negative-amount]=malformed [other-appid]=wrong_account [other-app]=wrong_account [other-seller]=wrong_account [other-mchid]=wrong_account
        [undecryptable]=undecryptable [stale]=stale
        [old-cert]=bad_signature [unknown-serial]=unknown_key)
    for account in alipay/shop1 wechat/shop1; do
        for oddity in $("$ctl" trigger -c "$conf" --account $account --list --json | jq -r '.oddity // empty'); do
            capture "$work/o.http" --account $account --oddity "$oddity" payment.succeeded
            wanted=${verdicts[$oddity]:-}
            [ -n "$wanted" ] || wrong "oddity $oddity is not known to this test"
            got=0
            [ "$wanted" = accepted ] || got=1
            run "$ctl" verify -c "$conf" --account $account --json "$work/o.http"; exits $got
            json --arg v "$wanted" --arg o "$oddity" '.[0].verdict == $v'
            [ "$wanted" = accepted ] || json '.[0].events == [] and .[0].reason != ""'
        done
    done
    # a stranger's key
    capture "$work/o.http" --account alipay/shop1 --sign-key "$work/keys/stranger_private.pem" payment.succeeded
    run "$ctl" verify -c "$conf" --account alipay/shop1 --json "$work/o.http"; exits 1
    json '.[0].verdict == "bad_signature"'
}

test_cmd__verify_needs_only_the_accounts_section() {
    capture "$work/a.http" --account alipay/shop1 payment.succeeded
    mkdir -p "$work/only/keys" && cp "$work/keys/alipay_public.pem" "$work/only/keys/"
    sed '/^\[alipay shop1\]/,/^public_key/!d' "$conf" >"$work/only/c.conf"
    printf '[wechat gone]\nmchid = 1\napi_v3_key_file = keys/gone.key\nplatform_cert = keys/gone.pem\n' \
        >>"$work/only/c.conf"
    chmod 600 "$work/only/c.conf"
    run "$ctl" verify -c "$work/only/c.conf" --account alipay/shop1 "$work/a.http"; exits 0; silent
    says '^accepted$'; says '^event +payment\.succeeded$'; says '88\.88 CNY'; says '^  total_amount = 88\.88$'
    run "$ctl" verify -c "$work/only/c.conf" --account wechat/gone "$work/a.http"; exits 78
    run "$ctl" verify -c "$work/only/c.conf" --account alipay/other "$work/a.http"; exits 78
}

# Whatever is in a capture gets a verdict; only one that cannot be read is usage.
test_cmd__verify_judges_every_capture() {
    local v=(run "$ctl" verify -c "$conf" --account alipay/shop1 --json)
    capture "$work/a.http" --account alipay/shop1 payment.succeeded
    "${v[@]}" "$work/none.http"; exits 2; complains 'none\.http'; same "$out" ''
    "${v[@]}" "$work"; exits 2
    : >"$work/empty.http"
    "${v[@]}" "$work/empty.http"; exits 1; json '.[0].verdict == "malformed" and .[0].events == []'
    head -c 4096 /dev/urandom >"$work/noise.http"
    "${v[@]}" "$work/noise.http"; exits 1; json '.[0].verdict == "malformed"'
    head -c 3000000 /dev/zero | tr '\0' 'x' >"$work/huge.http"
    "${v[@]}" "$work/huge.http"; exits 1; json '.[0].verdict == "malformed"'
    { printf 'POST /notify/alipay/shop1 HTTP/1.1\r\nContent-Length: 70002\r\n\r\na='
        head -c 70000 /dev/zero | tr '\0' 'x'; } >"$work/long.http"
    "${v[@]}" "$work/long.http"; exits 1; json '.[0].verdict == "malformed" and (.[0].reason | test("max_body"))'
    sed '1s/POST/GET/' "$work/a.http" >"$work/get.http"
    "${v[@]}" "$work/get.http"; exits 1; json '.[0].verdict != "accepted"'
    # another path, LF line ends: the same
    sed '1s,/notify/[^ ]*,/elsewhere,; s/\r$//' "$work/a.http" >"$work/lf.http"
    "${v[@]}" "$work/lf.http"; exits 0
    # from standard input
    out=$("$ctl" verify -c "$conf" --account alipay/shop1 --json - <"$work/a.http"); status=$?
    exits 0; json '.[0].verdict == "accepted"'
    # --at is "now": far from it the capture is stale
    capture "$work/w.http" --account wechat/shop1 payment.succeeded
    run "$ctl" verify -c "$conf" --account wechat/shop1 --json --at 1772362806 "$work/w.http"; exits 1
    json '.[0].verdict == "stale"'
}

# A body that the operator allowed by max_body is not over a limit.
test_cmd__verify_knows_a_greater_max_body() {
    make_conf "$work/big.conf" '[server]' 'max_body = 128k'
    run "$ctl" verify -c "$work/big.conf" --account alipay/shop1 --json "$work/long.http"; exits 1
    json '.[0].reason | test("max_body") | not'
}

# shellcheck disable=SC2046
run_tests $(declare -F | sed -n 's/^declare -f \(test_cmd__.*\)/\1/p')
