"""Everything at once: ingests that commit out of order or roll back, workers of
two kinds, and a hand that ends their connections at random moments."""
import random
import threading
import time

import psycopg

from support import LOST, connect

INGESTS = 3
WORKERS = 8
KILL_EVERY_SECONDS = 0.08
TIME_LAPSE = 40             # seconds of the tests' clock a second
LEASE = "20 s"              # half a second, then
STORM_SECONDS_MAX = 60
DEADLOCK = "40P01"

INSERT = """
INSERT INTO paynotify.event_log (received_at, id, receipt_id, livemode, type,
    provider, tenant, account, key, request_hash, out_trade_no, amount,
    currency, refund, occurred_at)
VALUES (now(), gen_random_uuid(), gen_random_uuid(), true, %s, %s, %s, %s,
    gen_random_uuid()::text, '', %s, %s, 'CNY', %s, now())
"""


class Storm:
    """events: tuples for INSERT. work: one statement that takes (seq, token)
    of an event, does the work and acks. batch: one that claims, works and acks
    in one transaction; it takes (max_events,)."""

    def __init__(self, case, events, work, batch, seed=1):
        self.case = case
        self.events = events
        self.work, self.batch = work, batch
        self.random = random.Random(seed)
        self.total = len(events)
        self.ended = threading.Event()
        self.pids = {}
        self.problems = []
        self.kills = self.lost = 0

    def ingest(self, number):
        """Transactions of some events each; one in eight rolls back first, and
        burns its numbers."""
        r = random.Random(number)
        mine = self.events[number::INGESTS]
        with connect(self.case.database, autocommit=False) as c:
            while mine and not self.ended.is_set():
                part = mine[:r.randint(1, 40)]
                for event in part:
                    c.execute(INSERT, event)
                if r.random() < 0.125:
                    c.rollback()
                    continue
                c.commit()
                mine = mine[len(part):]

    def worker(self, number):
        r = random.Random(100 + number)
        c = None
        while not self.ended.is_set():
            try:
                if c is None:
                    c = connect(self.case.database)
                    c.execute("SET statement_timeout = '20 s'")
                    self.pids[number] = c.info.backend_pid
                if number % 2:
                    c.execute(self.batch, [r.randint(1, 60)])
                    continue
                got = c.execute("SELECT seq, token FROM paynotify.claim("
                                "'app', %s, %s)",
                                [r.randint(1, 20), LEASE]).fetchall()
                for event in got:
                    c.execute(self.work, event)
                if not got:
                    time.sleep(0.005)
            except psycopg.Error as e:
                if c.closed:                    # killed
                    c = None
                # The lease ended: go on. A deadlock, where the new holder
                # waits for the work of the old one (a unique key) and its ack
                # for the new one's row: one of them is rolled back, as well.
                elif e.sqlstate in (LOST, DEADLOCK):
                    self.lost += 1
                else:
                    self.problems.append(e)
                    return
        if c is not None:
            c.close()

    def killer(self):
        while not self.ended.wait(KILL_EVERY_SECONDS):
            pid = self.random.choice(list(self.pids.values()) or [0])
            self.case.sql("SELECT pg_terminate_backend(pid)"
                          " FROM pg_stat_activity WHERE pid = %s"
                          " AND datname = current_database()", [pid])
            self.kills += 1
            self.case.pass_time(TIME_LAPSE * KILL_EVERY_SECONDS)

    def run(self, done):
        """Until done() says so; then all is quiet."""
        threads = [threading.Thread(target=f, args=a) for f, a in
                   [(self.ingest, (n,)) for n in range(INGESTS)]
                   + [(self.worker, (n,)) for n in range(WORKERS)]
                   + [(self.killer, ())]]
        for t in threads:
            t.start()
        until = time.monotonic() + STORM_SECONDS_MAX
        try:
            while (time.monotonic() < until and not self.problems
                    and not done()):
                time.sleep(0.05)
        finally:
            self.ended.set()
            for t in threads:
                t.join()
        if self.problems:
            raise self.problems[0]
