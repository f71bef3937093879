# shellcheck shell=bash disable=SC2034
# Sourced: what the command tests share. Run in the top folder of the project,
# with the folder of the programs as first argument.
#
#   run PROGRAM...    runs it; sets out, err, status
#   exits N           the last run's exit code is N
#   says PATTERN      its stdout matches (extended regular expression)
#   complains PATTERN its stderr matches
#   json FILTER       jq -e on its stdout, all objects as one array
#   same A B          equal text
#   test_NAME...      functions; run_tests runs those it is given and sums up

bin=$(cd "$1" && pwd)
ctl=$bin/paynotifyctl
top=$PWD
[ -x "$ctl" ] && [ -x "$bin/paynotifyd" ] || { echo "no programs in $bin: build them" >&2; exit 1; }
work=$(mktemp -d "${TMPDIR:-/tmp}/pncmd.XXXXXX")
passed=0 failed=0 current='' bad=0
export LC_ALL=C.UTF-8

wrong() {
    bad=$((bad + 1))
    [ $bad -le 3 ] || return # what follows from the first few says no more
    printf '%s: %s\n  status %s\n  stdout %s\n  stderr %s\n' "$current" "$1" \
        "${status:-}" "$(head -c 2000 <<<"${out:-}")" "$(head -c 2000 <<<"${err:-}")" >&2
}

run() {
    out=$(exec "$@" 2>"$work/err" </dev/null)
    status=$?
    IFS= read -rd '' err <"$work/err"
    err=${err%$'\n'}
}
# A line of TEXT matches; a grep would be a process, of which these tests have
# thousands.
matches() { # TEXT PATTERN
    local line
    while IFS= read -r line; do
        [[ $line =~ $2 ]] && return 0
    done <<<"$1"
    return 1
}
exits() { [ "$status" = "$1" ] || wrong "exit code should be $1"; }
says() { matches "$out" "$1" || wrong "stdout should match: $1"; }
complains() { matches "$err" "$1" || wrong "stderr should match: $1"; }
silent() { [ -z "$err" ] || wrong "stderr should be empty"; }
json() {
    jq -es "$@" >/dev/null 2>"$work/jqerr" <<<"$out" ||
        wrong "JSON should satisfy: $* $(<"$work/jqerr")"
}
same() { [ "$1" = "$2" ] || wrong "\"$1\" should be \"$2\""; }

run_tests() {
    for current; do
        bad=0 out='' err='' status=''
        "$current"
        if [ $bad = 0 ]; then
            passed=$((passed + 1))
            echo "ok $current"
        else
            failed=$((failed + 1))
            echo "FAILED $current"
        fi
    done
    echo "$passed passed, $failed failed"
    [ $failed = 0 ]
}

# Keys and a configuration with every kind of account; made anew each time.
make_keys() {
    local k
    mkdir -p "$work/keys"
    for k in alipay wechat stranger; do
        openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 \
            -out "$work/keys/${k}_private.pem" 2>/dev/null
        openssl pkey -in "$work/keys/${k}_private.pem" -pubout \
            -out "$work/keys/${k}_public.pem"
    done
    openssl rand -hex 16 >"$work/keys/v3.key"
    openssl rand -hex 16 >"$work/keys/v2.key"
    openssl req -x509 -key "$work/keys/stranger_private.pem" -days 365 -subj /CN=platform \
        -out "$work/keys/platform.pem" 2>/dev/null
    chmod 600 "$work"/keys/*
}

# conf FILE [LINE...]: the lines go in front (the [server] and so on).
make_conf() {
    local file=$1
    shift
    (
        umask 077
        printf '%s\n' "$@"
        cat <<CONF
[alipay shop1]
app_id = 2021000000000001
seller_id = 2088000000000001
public_key = keys/alipay_public.pem
test = yes
test_private_key = keys/alipay_private.pem
[alipay live]
app_id = 2021000000000002
public_key = keys/alipay_public.pem
[wechat shop1]
mchid = 1900000001
appid = wx0000000000000001
api_v3_key_file = keys/v3.key
public_key = PUB_KEY_ID_0000000000000000000001:keys/wechat_public.pem
platform_cert = keys/platform.pem
api_v2_key_file = keys/v2.key
test = yes
test_private_key = keys/wechat_private.pem
[wechat hmac]
mchid = 1900000002
api_v2_key_file = keys/v2.key
v2_sign_type = HMAC-SHA256
test = yes
CONF
    ) >"$file"
    chmod 600 "$file"
}
