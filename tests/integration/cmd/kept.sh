#!/bin/bash
# What is kept, as an operator looks at it: evidence verified again, also after
# somebody has changed it, and the quarantine.
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

answers() { (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }
start_daemon() {
    local i
    "$bin/paynotifyd" -c "$conf" 2>"$work/daemon.log" &
    daemon=$!
    for ((i = 0; i < 200; i++)); do
        answers && return
        sleep 0.1
    done
    wrong 'the daemon does not start'
}
sql() { psql -qXAt -v ON_ERROR_STOP=1 -c "$1" || wrong "SQL failed: $1"; }
trigger() { "$ctl" trigger -c "$conf" "$@" >"$work/trigger.out" 2>&1 || wrong "trigger $*: $(<"$work/trigger.out")"; }
verify() { run "$ctl" evidence verify -c "$conf" "$@"; }
quarantine() { run "$ctl" quarantine "$1" -c "$conf" "${@:2}"; }

test_kept__1_without_the_schema_db_migrate_is_named() {
    verify --all; exits 1; complains 'paynotifyctl db migrate'
    quarantine list; exits 1; complains 'paynotifyctl db migrate'
    quarantine show 1; exits 1; complains 'paynotifyctl db migrate'
    run "$ctl" db migrate -c "$conf"; exits 0
    verify --all; exits 0; silent; same "$out" '0 right, 0 wrong'
    quarantine list; exits 0; same "$out" ''; complains '^no quarantine entries yet$'
    start_daemon
}

test_kept__2_usage_says_what_is_wanted() {
    verify; exits 2; complains 'needs events .*--all'
    verify --all 1; exits 2; complains 'not both'
    quarantine list --state dead; exits 2; complains 'none of open, accepted'
    quarantine show; exits 2; complains 'needs ID'
    quarantine show x; exits 2; complains 'is no ID'
    verify 4711; exits 1; complains 'no event "4711"'
    quarantine show 4711; exits 1; complains 'no quarantine entry 4711'
}

# What the providers really said must verify, in every dialect, whatever the
# configuration is by now.
test_kept__3_honest_evidence_is_right() {
    trigger --account alipay/shop1 --out-trade-no A1 payment.succeeded
    trigger --account alipay/shop1 --out-trade-no A2 --charset GBK --duplicates 1 refund.succeeded
    trigger --account wechat/shop1 --out-trade-no W1 payment.succeeded
    trigger --account wechat/shop1 --out-trade-no V1 --dialect v2 payment.succeeded
    trigger --account wechat/shop1 --out-trade-no V2 --dialect v2 refund.succeeded
    trigger --account wechat/hmac --out-trade-no H1 payment.succeeded
    verify --all; exits 0; silent; same "$out" '6 right, 0 wrong'
    verify --all --json; exits 0
    json '. == [{"right": 6, "wrong": 0, "not_verifiable": 0, "not_comparable": 0, "missing": 0}]'
    verify --all --tenant hmac; exits 0; same "$out" '1 right, 0 wrong'
    verify --since 1h; exits 0; same "$out" '6 right, 0 wrong'
    verify --since 2099-01-01; exits 0; same "$out" '0 right, 0 wrong'
    verify webhook:alipay:A1 1; exits 0; same "$out" '2 right, 0 wrong'
    verify webhook:alipay:A1 nonsense; exits 1; complains 'no event "nonsense"'; same "$out" '1 right, 0 wrong'
    # other accounts, other keys: the one on record counts
    cat >"$work/other.conf" <<CONF
[database]
dsn = $PN_DSN
[alipay other]
app_id = 2021000000000009
public_key = keys/stranger_public.pem
CONF
    chmod 600 "$work/other.conf"
    run "$ctl" evidence verify --all --json -c "$work/other.conf"; exits 1
    json '.[-1].right == 3 and .[-1].not_verifiable == 3 and (.[0] | .result == "not_verifiable" and
        (.key_fingerprint | length) == 64)'
    run "$ctl" evidence verify webhook:alipay:A1 -c "$work/other.conf"; exits 1; says 'not_comparable .*not its account'
    mapfile -t seqs < <(sql 'SELECT seq FROM paynotify.event_log')
    verify --json "${seqs[@]}"; exits 0; json '.[-1] | .right == 7 and .not_comparable == 0'
}

# One byte of anything that counts, by whoever can write to the database.
test_kept__4_what_was_changed_is_found() {
    local name table set where n=0
    while IFS='|' read -r name table set where; do
        sql "CREATE TABLE public.saved AS TABLE paynotify.$table"
        sql "UPDATE paynotify.$table SET $set WHERE $where"
        verify --all --json; exits 1
        json --arg name "$name" '(.[-1].wrong >= 1) and (.[0] | .result == "wrong" and (.reason | test($name))
            and .received_at and .receipt_id and .provider)'
        sql "TRUNCATE paynotify.$table; INSERT INTO paynotify.$table SELECT * FROM public.saved; DROP TABLE public.saved"
        n=$((n + 1))
    done <<'LIST'
no configured public_key verifies|evidence|body = overlay(body placing '\x39' from position('total_amount=' in convert_from(body, 'LATIN1')) + 13)|provider = 'alipay' AND body LIKE '%out_trade_no=A1%'
the signature is wrong|evidence|body = set_byte(body, length(body) - 1, 32)|provider = 'wechat' AND headers LIKE '%Wechatpay-Nonce%'
the signature is wrong|evidence|headers = regexp_replace(headers, '(Wechatpay-Nonce: ).', '\1*')|headers LIKE '%Wechatpay-Nonce%'
not base64|evidence|headers = regexp_replace(headers, '(Wechatpay-Signature: )', '\1*')|headers LIKE '%Wechatpay-Nonce%'
Wechatpay-Signature is missing|evidence|headers = regexp_replace(headers, 'Wechatpay-Signature: [^\n]*\n', '')|headers LIKE '%Wechatpay-Nonce%'
not as they are stored|evidence|headers = concat(headers, '中: x')|headers LIKE '%Wechatpay-Nonce%'
the sign is wrong|evidence|body = overlay(body placing '\x39' from position('<total_fee>' in convert_from(body, 'LATIN1')) + 20)|body LIKE '%>V1<%' OR body LIKE '%CDATA[V1]%'
.|evidence|key_fingerprint = (SELECT key_fingerprint FROM public.saved WHERE headers LIKE '%Nonce%' LIMIT 1)|body LIKE '%out_trade_no=A1%'
not on record|evidence|key_fingerprint = sha256('x')|body LIKE '%out_trade_no=A1%'
another length|evidence|key_fingerprint = 'x'|body LIKE '%out_trade_no=A1%'
not readable|verifying_keys|pem = 'x'|pem IS NOT NULL
another than its fingerprint|verifying_keys|pem = (SELECT pem FROM public.saved s WHERE s.fingerprint <> verifying_keys.fingerprint AND pem IS NOT NULL LIMIT 1)|pem IS NOT NULL
no public key is on record|verifying_keys|pem = NULL|pem IS NOT NULL
not on record|verifying_keys|fingerprint = sha256(fingerprint)|pem IS NOT NULL
LIST
    same $n 14
    verify --all; exits 0; same "$out" '6 right, 0 wrong'
    # a signature that is right says nothing of an event that somebody has changed
    while IFS='|' read -r name set; do
        sql "CREATE TABLE public.saved AS TABLE paynotify.event_log"
        sql "UPDATE paynotify.event_log SET $set WHERE key = 'webhook:alipay:A1'"
        verify --json webhook:alipay:A1; exits 1
        json --arg name "$name" '.[0] | .result == "wrong" and (.reason | test($name))'
        sql "UPDATE paynotify.event_log e SET amount = s.amount, request_hash = s.request_hash, receipt_id = s.receipt_id,
            received_at = s.received_at FROM public.saved s WHERE s.seq = e.seq; DROP TABLE public.saved"
    done <<'LIST'
a field is another|amount = amount + 1
its fingerprint|request_hash = sha256('x')
of another event|(receipt_id, received_at) = (SELECT receipt_id, received_at FROM public.saved WHERE key = 'webhook:alipay:A2')
LIST
    verify webhook:alipay:A1; exits 0; same "$out" '1 right, 0 wrong'
    # people get a table, and the count
    sql "UPDATE paynotify.evidence SET body = body || 'x' WHERE body LIKE '%out_trade_no=A1%'"
    verify webhook:alipay:A1; exits 1; says '^RECEIVED +ACCOUNT +OUT_TRADE_NO +RECEIPT +RESULT +REASON$'
    says '^20.*Z  alipay/shop1  A1 .*  wrong   sign is not base64'; says '^0 right, 1 wrong$'
    sql "DELETE FROM paynotify.evidence WHERE body LIKE '%out_trade_no=A1%'"
    verify webhook:alipay:A1; exits 1; says 'missing'; says '^0 right, 0 wrong, 1 not kept any more$'
}

# Many pages of it: nothing is passed over, and nothing counted twice.
test_kept__5_many_pages_are_verified() {
    "$ctl" trigger -c "$conf" --account wechat/shop1 --count 350 --connections 16 payment.succeeded \
        >/dev/null || wrong 'trigger failed'
    verify --all; exits 0; same "$out" '355 right, 0 wrong'
    sql "UPDATE paynotify.evidence SET body = body || ' ' WHERE receipt_id IN (SELECT receipt_id FROM
        paynotify.evidence ORDER BY receipt_id DESC LIMIT 3)"
    verify --all --json; exits 1; json 'length == 4 and .[-1].wrong == 3 and .[-1].right == 352'
}

test_kept__6_the_quarantine_tells_why_and_what_to_do() {
    local id
    "$ctl" trigger -c "$conf" --account alipay/shop1 --out-trade-no A2 --amount 7777 payment.succeeded >/dev/null
    "$ctl" trigger -c "$conf" --account wechat/shop1 --oddity wrong_mchid payment.succeeded >"$work/o" 2>&1 ||
        : # not its success
    quarantine list; exits 0; says '^ID +RECEIVED +ACCOUNT +STATE +OUT_TRADE_NO +SUBJECT +REASON$'
    says '^[0-9]+ +20.*Z +alipay/shop1 +open +A2 +webhook:alipay:A2 +known key with other content$'
    quarantine list --json; exits 0
    json 'all(.[]; .state == "open" and (.fingerprint | length) == 64 and .reason)'
    quarantine list --json --provider alipay --tenant shop1 --state open --since 1h; exits 0; json 'length == 1'
    id=$(jq -s '.[0].id' <<<"$out")
    quarantine list --json --provider alipay --limit 0 --tenant live; exits 0; same "$out" ''
    quarantine list --tenant live; exits 0; complains 'no quarantine entries match'
    quarantine show "$id"; exits 0; silent
    says '^why +known key with other content$'; says '^fingerprint +[0-9a-f]{64}$'
    says '^recorded event +seq [0-9]+ of 20.*events show evt_'; says '^what to do +the same key came before'
    quarantine show "$id" --json; exits 0
    json '.[0] | .events[0].amount == 7777 and (.recorded_event_id | startswith("evt_")) and .hint'
    run "$ctl" events show -c "$conf" --json "$(jq -r .recorded_event_id <<<"$out")"; exits 0
    json '.[0].key == "webhook:alipay:A2" and .[0].amount == 8888'
}

# An operator looks here first: it must fit a screen, count what is small, and
# say where it estimates.
test_kept__7_stats_are_one_screen() {
    run "$ctl" stats -c "$conf"; exits 0; silent
    says '^20.*Z  [0-9,]+ events, [0-9.]+ MB in PostgreSQL [0-9.]+, schema [0-9]+$'
    says '^ACCOUNT +VERDICT +MINUTE +HOUR +DAY$'; says '^alipay/shop1 +recorded +[0-9,]+ +[0-9,]+ +[0-9,]+$'
    says '^quarantine +[1-9][0-9]* open, 1 of them conflicts$'
    says '^keys .* archived; guard: 0 PROCESSING, 0 FAILED$'; says '^old snapshot '; says '^replication +0 standbys'
    [ "$(wc -l <<<"$out")" -le 24 ] || wrong 'more than a screen'
    [ "$(wc -L <<<"$out")" -le 80 ] || wrong 'wider than a screen'
    run "$ctl" stats -c "$conf" --json; exits 0
    json '.[0] | .at and .events > 300 and .quarantine.conflicts == 1 and .keys.hot_estimate >= 0 and
        .guard == {"processing": 0, "failed": 0, "more": false} and .database.bytes > 1000000 and
        .database.schema == .database.schema_wanted and .replication.standbys == 0 and .consumers == [] and
        ([.traffic[] | select(.tenant == "hmac")] | length == 1 and .[0].day == 1 and .[0].estimated == false)'
    # a burst of 3000 in a minute ten minutes ago, of which 500 are read
    sql "INSERT INTO paynotify.receipts (id, received_at, provider, tenant, verdict, status, body_bytes)
        SELECT (lpad(to_hex((extract(epoch FROM t) * 1000)::int8), 12, '0') || '7' || substr(md5(i::text), 1, 3)
            || '8' || substr(md5(i::text), 4, 15))::uuid, t, 'alipay', 'burst', 'malformed', 400, 1
        FROM (SELECT i, now() - interval '10 minutes' + i * interval '19 ms' AS t
            FROM generate_series(1, 3000) i) x"
    run "$ctl" stats -c "$conf" --json; exits 0
    json '.[0] | [.traffic[] | select(.tenant == "burst")] | length == 1 and .[0].estimated and .[0].minute == 0
        and .[0].hour > 1500 and .[0].hour < 6500 and .[0].day == .[0].hour'
    run "$ctl" stats -c "$conf"; exits 0; says '^alipay/burst +malformed +0 +~[0-9],[0-9]{3} +~'
    # more accounts and consumers than there is room for
    sql "INSERT INTO paynotify.receipts (id, received_at, provider, tenant, verdict, status, body_bytes)
        SELECT (lpad(to_hex((extract(epoch FROM now()) * 1000)::int8), 12, '0') || '7abc8' || lpad(i::text, 15,
            '0'))::uuid, now(), 'alipay', 'many' || i, 'recorded', 200, 1 FROM generate_series(1, 30) i"
    for c in a b c d e f; do sql "SELECT paynotify.register_consumer('$c')" >/dev/null; done
    run "$ctl" stats -c "$conf"; exits 0; says '^\.\.\. and 2 more; --json has all$'
    says '^CONSUMER +STATE +BEHIND +RETRY +DEAD +OLDEST$'; says '^a +active +[0-9,]+ +0 +0 +20'
    [ "$(wc -l <<<"$out")" -le 24 ] || wrong 'more than a screen'
    run "$ctl" stats -c "$conf" 5; exits 2; complains 'for --watch'
    run "$ctl" stats -c "$conf" --watch 0; exits 2; complains 'not SECONDS'
}

# screen FILE [NAME=VALUE...] -- COMMAND...: what a terminal of 80 columns gets.
screen() {
    local file=$1 settings=()
    shift
    while [ "$1" != -- ]; do settings+=("$1"); shift; done
    shift
    env -u NO_COLOR TERM=xterm "${settings[@]}" timeout 60 script -qefc "stty cols 80 2>/dev/null; $*" "$file" \
        >/dev/null 2>&1 </dev/null
}

# Watching ends by Ctrl-C, which is no failure; what goes into a file has no
# control sequence in it.
test_kept__8_watching_draws_anew_and_ends_well() {
    local pid i
    "$ctl" stats -c "$conf" --watch 1 >"$work/watched" 2>"$work/watched.err" &
    pid=$!
    for ((i = 0; i < 200; i++)); do
        [ "$(grep -c '^replication' "$work/watched")" -lt 2 ] || break
        sleep 0.1
    done
    kill -TERM $pid; wait $pid; status=$? out=$(<"$work/watched") err=$(<"$work/watched.err")
    exits 0; silent
    [ "$(grep -c '^replication' "$work/watched")" -ge 2 ] || wrong 'it is not drawn anew'
    grep -q $'\033' "$work/watched" && wrong 'a control sequence in a file'
    # on a terminal: the screen is cleared, titles are bold, states coloured
    screen "$work/screen" -- "timeout -s INT 3 $ctl stats -c $conf --watch 1"
    grep -q $'\033\\[H\033\\[2J' "$work/screen" || wrong 'the screen is not cleared'
    grep -q $'\033\\[1mACCOUNT\033\\[0m' "$work/screen" || wrong 'titles are not bold'
    grep -q $'\033\\[32mrecorded\033\\[0m' "$work/screen" || wrong 'states have no colour'
    screen "$work/screen" NO_COLOR=1 -- "$ctl stats -c $conf"
    grep -q 'ACCOUNT' "$work/screen" || wrong 'nothing is shown'
    grep -q $'\033' "$work/screen" && wrong 'colours in spite of NO_COLOR'
}

# bundle: makes one, and unpacks it to $work/bundle.
bundle() {
    rm -rf "$work/bundle" "$work/b.tar.gz"
    run "$ctl" support-bundle -c "$1" --output "$work/b.tar.gz"
    exits 0
    mkdir "$work/bundle" && tar -xzf "$work/b.tar.gz" -C "$work/bundle" --strip-components=1 ||
        wrong 'it is no archive'
}
holds() { grep -qE -- "$2" "$work/bundle/$1" || wrong "$1 should hold: $2, not: $(head -c 400 "$work/bundle/$1")"; }

# What is sent to strangers must hold nothing that opens a door or names anybody.
test_kept__9_a_bundle_holds_no_secret() {
    local f n=0 planted=(Geheim-1-passwort geheim%202 hook-token-T0000 url-geheim MetricsGeheim gezwungen-7
        comment-geheim o-openid-of-somebody 6226000000000000 order-of-somebody 203.0.113.77)
    mkdir -p "$work/conf.d"
    {
        printf '%s\n' "include = conf.d/*.conf" '; comment-geheim' '[server]' 'listen = 127.0.0.1:1' '[admin]' \
            "listen = 127.0.0.1:2" 'token_file = keys/admin.token' '[database]' "dsn = $PN_DSN password='Geheim-1-passwort'" \
            'admin_dsn = '"$PN_DSN"' password=gezwungen-7'
        sed -n '/^\[alipay shop1\]/,$p' "$conf"
    } >"$work/secret.conf"
    printf '%s\n' '[deliver app]' 'url = https://example.com/hook-token-T0000/x?key=MetricsGeheim' \
        'secret_file = ../keys/push.key ; comment-geheim' >"$work/conf.d/app.conf"
    printf 'whsec_%s\n' "$(openssl rand -base64 32)" >"$work/keys/push.key"
    openssl rand -hex 32 >"$work/keys/admin.token"
    chmod 600 "$work"/secret.conf "$work"/conf.d/* "$work"/keys/*
    sql "INSERT INTO paynotify.receipts (id, received_at, provider, tenant, verdict, status, body_bytes, reason,
            out_trade_no, peer, raw, headers)
        SELECT (lpad(to_hex((extract(epoch FROM now()) * 1000)::int8), 12, '0') || '7fff8fffffffffffffff')::uuid,
            now(), 'wechat', 'shop1', 'quarantined', 422, 9, 'invalid input: \"6226000000000000\" openid=o-openid-of-somebody',
            'order-of-somebody', '203.0.113.77', 'o-openid-of-somebody', 'Authorization: Bearer MetricsGeheim'"
    bundle "$work/secret.conf"
    says '^config.txt +the configuration, without secrets'; says 'look through it'
    same "$(stat -c %a "$work/b.tar.gz")" 600
    for f in "$work"/keys/*private.pem "$work/keys/v3.key" "$work/keys/v2.key" "$work/keys/push.key" \
        "$work/keys/admin.token"; do
        while read -r line; do
            case $line in -----*) continue ;; esac
            [ ${#line} -lt 6 ] || planted+=("$line" "${line#whsec_}")
        done <"$f"
    done
    for f in "${planted[@]}"; do
        grep -rqF -- "$f" "$work/bundle" && wrong "the bundle holds: $f in $(grep -rlF -- "$f" "$work/bundle")"
        n=$((n + 1))
    done
    [ $n -gt 80 ] || wrong 'hardly anything was looked for'
    grep -rq 'PRIVATE KEY' "$work/bundle" && wrong 'a private key'
    same "$(ls "$work/bundle" | wc -l)" 12
    holds config.txt '^dsn = .*dbname'; holds config.txt '^url = https://example.com/\.\.\.$'
    holds config.txt '^secret_file = \.\./keys/push\.key$'; holds config.txt '^; file .*conf\.d/app\.conf$'
    holds config-check.txt '^configuration OK: 4 accounts'; holds schema.txt '^0001 .* applied '
    holds stats.json '"events":3'; holds receipts.txt '  wechat/shop1  quarantined  422  9 bytes  invalid input: "\.\.\."'
    holds postgresql.txt '^fsync = o'; holds readyz.txt '^not available: '; holds versions.txt "^paynotifyctl "
    holds README.txt '^journal.txt '
    run "$ctl" support-bundle -c "$work/secret.conf" --output "$work/b.tar.gz"; exits 1; complains 'File exists.*--output'
    (cd "$work" && run "$ctl" support-bundle -c secret.conf --json; exits 0
        json '.[0].parts | length == 12'; [ -f "$(jq -r .file <<<"$out")" ] || wrong 'no file of the usual name')
}

# The worse it is, the more it is needed.
test_kept__a_bundle_is_made_when_things_are_broken() {
    make_conf "$work/away.conf" '[server]' 'listen = 127.0.0.1:1' '[database]' \
        'dsn = postgresql://u:Geheim-1-passwort@127.0.0.1:1/db?password=geheim%202'
    bundle "$work/away.conf"
    holds stats.json '^not available: could not connect'; holds schema.txt '^not available'
    holds config.txt '^dsn = postgresql://.*@127.0.0.1:1/db$'
    grep -rqE 'Geheim|geheim' "$work/bundle" && wrong 'a password'
    make_conf "$work/bad.conf" '[server]' 'pasword = Geheim-1-passwort' 'listen = nonsense' 'Geheim-1-passwort' '[deliver app]' \
        'url = https://hans:url-geheim@example.com/x'
    bundle "$work/bad.conf"
    holds config-check.txt 'bad\.conf:[0-9]+: '; holds config.txt '^\(masked\): not an option$'
    holds stats.json '^not available: .*bad\.conf'
    grep -rqiE 'geheim' "$work/bundle" && wrong 'a password'
    # a secret where the name of its file belongs: as good as told, unless masked
    make_conf "$work/typed.conf" '[admin]' 'listen = 127.0.0.1:1' 'token_file = 9f86d081884c7d65-geheim' \
        '[wechat typed]' 'mchid = 1900000009' 'api_v3_key_file = Th1sIsGeheim0000000000000000' 'test = yes' \
        'test_private_key = MIIEvQIBADANBgkq/hkiG9w0BAgeheim/x='
    bundle "$work/typed.conf"
    holds config.txt '^test_private_key = \(masked\): there is no such file$'
    holds config.txt '^api_v2_key_file = keys/v2\.key$'; holds config-check.txt 'typed\.conf:3: token_file: there is no such file'
    grep -rqiE 'geheim' "$work/bundle" && wrong 'a secret that was typed'
    bundle "$work/none.conf"; holds config.txt 'cannot be read'; holds config-check.txt 'none\.conf'
}

# shellcheck disable=SC2046 # in order: later ones use what earlier ones recorded
run_tests $(declare -F | sed -n 's/^declare -f \(test_kept__.*\)/\1/p')
