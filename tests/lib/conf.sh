# Sourced: a configuration for the requests that tests/bench/gen.mjs makes.
#
#   pn_conf DIR PORT [LINE...]   writes DIR/paynotifyd.conf for the keys in
#                                DIR/keys and the database of PN_DSN; the lines
#                                go into [server]
#   pn_free_port                 prints a port that is free on 127.0.0.1

pn_conf() {
    local dir=$1 port=$2
    shift 2
    (
        umask 077
        {
            echo "[server]"
            echo "listen = 127.0.0.1:$port"
            printf '%s\n' "$@"
            cat <<CONF
[database]
dsn = $PN_DSN
[alipay shop1]
app_id = 2021000000000001
seller_id = 2088000000000001
public_key = keys/alipay.pub.txt
[wechat shop1]
mchid = 1900000001
appid = wx0000000000000001
api_v3_key_file = keys/apiv3.txt
public_key = PUB_KEY_ID_0000000000000000000001:keys/wechatpay.pub
CONF
        } >"$dir/paynotifyd.conf"
    )
}

pn_free_port() {
    python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}
