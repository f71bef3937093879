#!/bin/bash
# Makes two CAs and, from the first, a certificate for "localhost", in a folder
# of its own (PN_TLS_DIR), runs the program, and removes them: no key is kept.
#
#   tests/integration/net/tls.sh PROGRAM
set -euo pipefail

PN_TLS_DIR=$(mktemp -d /tmp/pn-tls.XXXXXX)
export PN_TLS_DIR
trap 'rm -rf "$PN_TLS_DIR"' EXIT

make_ca() { # name
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
        -days 2 -subj "/CN=$1" -keyout "$PN_TLS_DIR/$1.key" \
        -out "$PN_TLS_DIR/$1.pem" \
        -addext basicConstraints=critical,CA:TRUE 2>/dev/null
}

make_ca ca
make_ca other
openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
    -subj /CN=localhost -keyout "$PN_TLS_DIR/server.key" \
    -out "$PN_TLS_DIR/server.csr" 2>/dev/null
openssl x509 -req -in "$PN_TLS_DIR/server.csr" -days 2 -CAcreateserial \
    -CA "$PN_TLS_DIR/ca.pem" -CAkey "$PN_TLS_DIR/ca.key" \
    -extfile <(printf 'subjectAltName=DNS:localhost\n') \
    -out "$PN_TLS_DIR/server.pem" 2>/dev/null
"$1"
