#!/usr/bin/env python3
"""An application that pulls events by SQL, to be killed at any moment.

Does its work - a row in work - and acknowledges in one transaction: now an event
at a time, now a batch with its claim. Dawdles once in a while until its lease
has ended: then the acknowledgement must raise, and its work is undone.
"""
import random
import select
import time

import psycopg

CONSUMER = "ledger"
BATCH = 10
LEASE_SECONDS = 1.5
DAWDLES = 0.02              # of the events
WAIT_SECONDS = 0.3          # for a notification
LOST = "PN001"


def work(db, event):
    seq, order, token = event
    db.execute("INSERT INTO work (seq, order_no) VALUES (%s, %s)", (seq, order))
    return token


def claim(db):
    return db.execute(
        "SELECT seq, tenant || '/' || account || '/' || out_trade_no, token"
        " FROM paynotify.claim(%s, %s, make_interval(secs => %s))",
        (CONSUMER, BATCH, LEASE_SECONDS)).fetchall()


def one_by_one(db):
    events = claim(db)
    for event in events:
        if random.random() < DAWDLES:
            time.sleep(LEASE_SECONDS + 0.2)
        with db.transaction():
            db.execute("SELECT paynotify.ack(%s)", (work(db, event),))
    return events


def together(db):
    with db.transaction():
        events = claim(db)
        tokens = [work(db, event) for event in events]
        db.execute("SELECT paynotify.ack_all(%s)", (tokens,))
    return events


def run():
    with psycopg.connect(autocommit=True) as db:
        db.execute("LISTEN paynotify_events")
        while True:
            try:
                events = random.choice([one_by_one, together])(db)
            except psycopg.Error as e:
                if e.sqlstate != LOST:
                    raise
                print("lost a lease", flush=True)
                continue
            if not events:
                select.select([db], [], [], WAIT_SECONDS)
                db.execute("SELECT 1")  # reads what was notified


def main():
    while True:
        try:
            run()
        except psycopg.OperationalError:
            time.sleep(0.1)     # the database is away


if __name__ == "__main__":
    main()
