#!/usr/bin/env python3
"""An application that takes its events by SQL, in Python (psycopg 3).

PGHOST, PGDATABASE, PGUSER ... say where. Each event is worked on and
acknowledged in one transaction, so it is done exactly once.

pull.py [--drain]       --drain: ends when there is nothing left
"""
import contextlib
import os
import select
import sys

import psycopg
from psycopg.rows import dict_row

CONSUMER = os.environ.get("CONSUMER", "shop-py")
POLL_SECONDS = float(os.environ.get("POLL_SECONDS", 5))


def work(db, event):
    """Your own work, in the transaction that acknowledges."""
    db.execute(
        "INSERT INTO payments (event_id, type, out_trade_no, amount, currency)"
        " VALUES (%(id)s, %(type)s, %(out_trade_no)s, %(amount)s,"
        " %(currency)s)", event)


def main():
    db = psycopg.connect("", autocommit=True, row_factory=dict_row)
    woken = []
    db.add_notify_handler(woken.append)
    db.execute("SELECT paynotify.register_consumer(%s)", [CONSUMER])
    db.execute("LISTEN paynotify_events")
    while True:
        woken.clear()
        events = db.execute("SELECT * FROM paynotify.claim(%s, 100,"
                            " '5 minutes')", [CONSUMER]).fetchall()
        for event in events:
            try:
                with db.transaction():
                    work(db, event)
                    db.execute("SELECT paynotify.ack(%s)", [event["token"]])
            except Exception as e:
                if db.closed:
                    raise       # start again: leases end by themselves
                print(f"event {event['id']}: {e}", file=sys.stderr)
                with contextlib.suppress(psycopg.Error):    # lost: it comes
                    db.execute("SELECT paynotify.nack(%s, '5 minutes', %s)",
                               [event["token"], str(e)[:200]])
        if not events:
            if "--drain" in sys.argv:
                return
            if not woken:
                select.select([db.fileno()], [], [], POLL_SECONDS)


if __name__ == "__main__":
    main()
