#!/usr/bin/env python3
"""An application on MySQL or MariaDB that is pushed to.

paynotifyd posts each event at least once. The event's id is kept in the same
transaction as the work, so that the work is done exactly once: a repeat finds
the id, and is answered with success.

push_mysql.py PORT SECRET_FILE      the database: MYSQL_SOCKET, MYSQL_DATABASE

The table that makes it so:
    CREATE TABLE seen_events (id varchar(40) PRIMARY KEY);
"""
import base64
import hashlib
import hmac
import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pymysql

BODY_BYTES_MAX = 1 << 20
AGE_SECONDS_MAX = 300
DUPLICATE = 1062                # MySQL: the unique key is there already
local = threading.local()


def signed(secret, headers, body):
    """Standard Webhooks: HMAC-SHA256 of id.timestamp.body. During a rotation
    the header carries several signatures."""
    stamp = headers.get("webhook-timestamp", "")
    if (not stamp.isascii() or not stamp.isdigit()
            or abs(time.time() - int(stamp)) > AGE_SECONDS_MAX):
        return False
    content = f"{headers.get('webhook-id', '')}.{stamp}.".encode() + body
    wanted = b"v1," + base64.b64encode(
        hmac.new(secret, content, hashlib.sha256).digest())
    return any(hmac.compare_digest(wanted, s.encode())
               for s in headers.get("webhook-signature", "").split(" "))


def database():
    """A connection for each thread."""
    if getattr(local, "db", None) is None:
        local.db = pymysql.connect(unix_socket=os.environ["MYSQL_SOCKET"],
                                   user=os.environ.get("MYSQL_USER", "root"),
                                   database=os.environ["MYSQL_DATABASE"])
    return local.db


def work(cursor, event):
    """Your own work, in the transaction that remembers the id."""
    cursor.execute(
        "INSERT INTO payments (event_id, type, out_trade_no, amount, currency)"
        " VALUES (%s, %s, %s, %s, %s)",
        [event[k] for k in ("id", "type", "out_trade_no", "amount",
                            "currency")])


def handle(event):
    db = database()
    try:
        db.begin()
        with db.cursor() as cursor:
            try:
                cursor.execute("INSERT INTO seen_events VALUES (%s)",
                               [event["id"]])
            except pymysql.err.IntegrityError as e:
                if e.args[0] != DUPLICATE:
                    raise
                db.rollback()
                return          # it has been done
            work(cursor, event)
        db.commit()
    except BaseException:
        local.db = None         # whatever state it is in: a new one next time
        db.close()
        raise


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60                # of an idle connection
    secret = b""

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > BODY_BYTES_MAX:
            self.close_connection = True
            return self.answer(413)
        body = self.rfile.read(int(length))
        if not signed(self.secret, self.headers, body):
            return self.answer(401)
        try:
            handle(json.loads(body))
        except Exception as e:
            print(f"event {self.headers['webhook-id']}: {e!r}", file=sys.stderr)
            return self.answer(500)     # it comes again
        return self.answer(204)         # after the commit, and only then

    def answer(self, status):
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128    # paynotifyd opens max_in_flight at once


def main():
    port, secret_file = sys.argv[1:]
    with open(secret_file, encoding="ascii") as f:
        Handler.secret = base64.b64decode(f.read().strip()
                                          .removeprefix("whsec_"))
    Server(("127.0.0.1", int(port)), Handler).serve_forever()


if __name__ == "__main__":
    main()
