"""What the tests of the SQL hand-off share: a database each, connections that
may block, a clock that can be set forward.

run.sh makes a server and migrates one database; the tests use copies of it. In
the copies clock_timestamp() of the schema's functions is replaced by a clock
that a test sets (Case.pass_time): leases end when a test says so, and nobody
sleeps.
"""
import itertools
import os
import queue
import threading
import time
import unittest

import psycopg

HOST = os.environ["PGHOST"]
USER = os.environ["PGUSER"]
MIGRATED = os.environ["PGDATABASE"]
TEMPLATE = "pull_template"
WAIT_SECONDS_MAX = 30       # for what must happen; then the test fails
LOST = "PN001"              # SQLSTATE: the lease was lost
UNKNOWN = "PN002"           # no such consumer
REFUSED = "PN003"           # not now, or not this kind of consumer

numbers = itertools.count(1)

RENEW = ("CLOSE ALL", "SET SESSION AUTHORIZATION DEFAULT", "RESET ALL", "UNLISTEN *",
         "SELECT pg_advisory_unlock_all()", "DISCARD PLANS", "DISCARD TEMP",
         "DISCARD SEQUENCES")

CLOCK = """
CREATE SEQUENCE public.clock_ms MINVALUE 0 START 0;
SELECT setval('public.clock_ms', 0);
-- A sequence, since that moves at once for everybody, in any transaction. Who reads
-- the clock may have been told to shun what scans, which a sequence is: the cost
-- would have PostgreSQL compile it, 18 ms each time.
CREATE FUNCTION public.test_clock() RETURNS timestamptz
LANGUAGE sql VOLATILE SECURITY DEFINER SET enable_seqscan = on AS
$$ SELECT pg_catalog.clock_timestamp()
    + (SELECT last_value FROM public.clock_ms) * interval '1 ms' $$;
DO $do$
DECLARE
    f record;
BEGIN
    FOR f IN SELECT pg_get_functiondef(p.oid) AS source
        FROM pg_proc p
        WHERE p.pronamespace = 'paynotify'::regnamespace AND p.prokind = 'f'
            AND p.prosrc LIKE '%clock_timestamp()%' LOOP
        EXECUTE replace(f.source, 'clock_timestamp()', 'public.test_clock()');
    END LOOP;
END
$do$;
CREATE TABLE public.work (seq bigint, who text);
GRANT INSERT ON public.work TO PUBLIC;
"""


def connect(database, user=USER, autocommit=True, **more):
    return psycopg.connect(host=HOST, user=user, dbname=database,
                           autocommit=autocommit, **more)


def is_ended(connection):
    """Also if its server process has been told to and nobody has looked."""
    if not connection.closed:
        try:
            connection.execute("SELECT")
        except psycopg.errors.InFailedSqlTransaction:
            pass
        except psycopg.Error:
            connection.close()
    return connection.closed


def renew(connection):
    """What DISCARD ALL does but for the statements that the driver prepared.
    What the server knows of the tables is kept: it is what a new connection
    spends its time on."""
    connection.rollback()
    for text in RENEW:
        connection.execute(text)


def make_database(name, template):
    """Makes a copy of a database, once."""
    with connect("postgres") as c:
        if c.execute("SELECT 1 FROM pg_database WHERE datname = %s",
                     [name]).fetchone():
            return False
        c.execute(f'CREATE DATABASE {name} TEMPLATE "{template}"')
    return True


def make_template():
    """Copies the migrated database and gives the copy its clock."""
    if make_database(TEMPLATE, MIGRATED):
        with connect(TEMPLATE) as c:
            c.execute(CLOCK)


class Session:
    """A connection with a thread: a statement may block while the test goes
    on. Statements run in order."""

    def __init__(self, case, connection):
        self.case = case
        self.connection = connection
        self.pid = connection.info.backend_pid
        self.todo = queue.Queue()
        self.last = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while True:
            job = self.todo.get()
            if job is None:
                return
            sql, args, done = job
            try:
                cursor = self.connection.execute(sql, args)
                done.rows = cursor.fetchall() if cursor.description else []
            except psycopg.Error as e:
                done.error = e
            done.event.set()

    def start(self, sql, args=None):
        """Sends a statement; returns a Pending."""
        self.last = Pending(self)
        self.todo.put((sql, args, self.last))
        return self.last

    def run(self, sql, args=None):
        """Sends a statement and returns its rows, or raises its error."""
        return self.start(sql, args).result()

    def one(self, sql, args=None):
        return self.run(sql, args)[0][0]

    def renew(self):
        """As if it were a new one. False: it is busy, or has ended."""
        if self.last and not self.last.event.is_set() or is_ended(self.connection):
            return False
        renew(self.connection)
        return True

    def close(self):
        self.todo.put(None)
        self.connection.close()


class Pending:
    """A statement that was sent."""

    def __init__(self, session):
        self.session = session
        self.event = threading.Event()
        self.rows = None
        self.error = None

    def settle(self):
        """Waits until the statement is done (True) or blocked (False)."""
        end = time.monotonic() + WAIT_SECONDS_MAX
        while time.monotonic() < end:
            if self.event.wait(0.001):
                return True
            if self.session.case.sql("SELECT cardinality(pg_blocking_pids(%s))",
                                     [self.session.pid])[0][0] > 0:
                return False
        raise AssertionError("a statement neither ended nor blocked")

    def result(self):
        if not self.event.wait(WAIT_SECONDS_MAX):
            raise AssertionError("a statement did not end")
        if self.error is not None:
            raise self.error
        return self.rows


# DELETE: a TRUNCATE of all partitions takes half a second.
EMPTY = """
DELETE FROM public.work;
DELETE FROM paynotify.delivery_attempts;
DELETE FROM paynotify.delivery_actions;
DELETE FROM paynotify.claims;
DELETE FROM paynotify.deliveries;
DELETE FROM paynotify.consumer_marks;
DELETE FROM paynotify.endpoints;
DELETE FROM paynotify.consumers;
DELETE FROM paynotify.evidence;
DELETE FROM paynotify.event_log;
DELETE FROM paynotify.idempotency_keys;
DELETE FROM paynotify.idempotency_archive;
DELETE FROM paynotify.guard_actions;
ALTER TABLE paynotify.event_log ALTER seq RESTART;
SELECT setval('public.clock_ms', 0);
"""


class Case(unittest.TestCase):
    """A test with an empty database; of its own, if it changes functions."""

    own_database = False
    idle = {}       # user: [Session], of the database that is shared
    shared = None   # the connection of all tests to it

    def setUp(self):
        make_template()
        self.database = f"pull_shared_{os.getpid()}"
        if self.own_database:
            self.database = f"pull_{os.getpid()}_{next(numbers)}"
        fresh = make_database(self.database, TEMPLATE)
        self.sessions = []
        self.lock = threading.Lock()
        if self.own_database:
            self.admin = connect(self.database)
            return
        if Case.shared is None or is_ended(Case.shared):
            Case.shared = connect(self.database)
        self.admin = Case.shared
        if not fresh:
            self.sql(EMPTY)

    def tearDown(self):
        kept = []
        for user, s in self.sessions:
            if not self.own_database and s.renew():
                kept.append((user, s))
                Case.idle.setdefault(user, []).append(s)
            else:
                s.todo.put(None)
        # Whatever a failed test left hanging; then nobody waits for it.
        pids = [s.pid for sessions in Case.idle.values() for s in sessions]
        self.admin.execute("SELECT pg_terminate_backend(pid)"
                           " FROM pg_stat_activity"
                           " WHERE datname = current_database()"
                           " AND pid NOT IN (SELECT unnest(%s::integer[])"
                           " UNION SELECT pg_backend_pid())", [pids])
        for user, s in self.sessions:
            if (user, s) not in kept:
                s.thread.join(WAIT_SECONDS_MAX)
                s.connection.close()
        if not self.own_database:
            renew(self.admin)
            return
        self.admin.close()
        with connect("postgres") as c:
            c.execute(f"DROP DATABASE {self.database} WITH (FORCE)")

    def session(self, user=USER, timeout_ms=20000):
        """A connection for one worker. Whatever waits longer than the timeout
        for another transaction fails."""
        idle = [] if self.own_database else Case.idle.get(user, [])
        while idle and is_ended(idle[-1].connection):
            idle.pop().close()
        s = idle.pop() if idle else Session(self, connect(self.database, user=user))
        s.case = self
        s.connection.execute(f"SET statement_timeout = {timeout_ms}")
        self.sessions.append((user, s))
        return s

    def sql(self, text, args=None):
        with self.lock:
            cursor = self.admin.execute(text, args)
            return cursor.fetchall() if cursor.description else []

    def value(self, text, args=None):
        return self.sql(text, args)[0][0]

    def register(self, consumer="app", *args):
        names = ["tenants", "types", "start_at"][:len(args)]
        self.sql("SELECT paynotify.register_consumer(%s"
                 + "".join(f", {n} => %s" for n in names) + ")",
                 [consumer, *args])
        return consumer

    def event(self, order=None, type="payment.succeeded", tenant="shop1",
              account="2088000000000001", provider="alipay", at=None,
              session=None, amount=100, refund=None):
        """Records an event as ingest does; returns its seq."""
        run = session.run if session else self.sql
        return run(
            "INSERT INTO paynotify.event_log (received_at, id, receipt_id,"
            " livemode, type, provider, tenant, account, key, request_hash,"
            " out_trade_no, amount, currency, refund)"
            " VALUES (coalesce(%s, now()), gen_random_uuid(),"
            " gen_random_uuid(), true, %s, %s, %s, %s,"
            " gen_random_uuid()::text, '', %s, %s, 'CNY', %s) RETURNING seq",
            [at, type, provider, tenant, account, order, amount, refund])[0][0]

    def events(self, n, **more):
        return [self.event(**more) for _ in range(n)]

    def claim(self, session=None, consumer="app", most=100, lease="1 hour"):
        """Returns {seq: token}, in the order in which the rows came."""
        run = session.run if session else self.sql
        return dict(run("SELECT seq, token FROM paynotify.claim(%s, %s, %s)",
                        [consumer, most, lease]))

    def ack(self, token, session=None):
        run = session.run if session else self.sql
        run("SELECT paynotify.ack(%s)", [token])

    def nack(self, token, after="30 seconds", reason=None, session=None):
        run = session.run if session else self.sql
        run("SELECT paynotify.nack(%s, %s, %s)", [token, after, reason])

    def done(self, *tokens):
        self.sql("SELECT paynotify.ack_all(%s::uuid[])", [list(tokens)])

    def tend(self):
        self.sql("SELECT paynotify.tend_consumers()")

    def pass_time(self, seconds):
        self.sql("SELECT setval('public.clock_ms', last_value + %s)"
                 " FROM public.clock_ms", [int(seconds * 1000)])

    def states(self, consumer="app"):
        """{seq: state} of the rows of deliveries."""
        return dict(self.sql(
            "SELECT d.seq, d.state FROM paynotify.deliveries d"
            " JOIN paynotify.consumers c ON c.id = d.consumer_id"
            " WHERE c.name = %s ORDER BY d.seq", [consumer]))

    def mark(self, consumer="app"):
        return self.value(
            "SELECT max(m.seq) FROM paynotify.consumer_marks m"
            " JOIN paynotify.consumers c ON c.id = m.consumer_id"
            " WHERE c.name = %s", [consumer])

    def refused(self, state, call, *args, **more):
        """Calls, and wants an error with that SQLSTATE."""
        states = [state] if isinstance(state, str) else state
        with self.assertRaises(psycopg.Error) as raised:
            call(*args, **more)
        self.assertIn(raised.exception.sqlstate, states, raised.exception)
        return raised.exception
