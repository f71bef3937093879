"""What is promised of the hand-off's speed: events that applications pull by
SQL, events that are pushed by HTTP. The events are made by SQL, as ingest would
record them, unless receiving is what is measured.
"""
import atexit
import base64
import json
import multiprocessing
import os
import secrets
import signal
import subprocess
import time

import psycopg2
import psycopg2.extensions
import psycopg2.extras

import measure

STAGES = ("pull", "push", "latency", "receiving")
PULLERS = 2
BATCH = 100
PULL_WANT = 10_000
PUSH_WANT = 5_000
PUSH_RATE = 200
EVENTS_A_SECOND = 25_000  # more than can be handed off

# Events with evidence, one an order, in notifications of one event.
MAKE_EVENTS = """
WITH n AS MATERIALIZED (SELECT g, gen_random_uuid() AS receipt_id
    FROM generate_series(1, {count}) g), e AS (
INSERT INTO paynotify.event_log (received_at, id, receipt_id, livemode, type,
    provider, tenant, account, key, request_hash, out_trade_no, transaction_id,
    amount, order_amount, currency, occurred_at)
SELECT now(), gen_random_uuid(), receipt_id, false, 'payment.succeeded',
    'alipay', 'shop1', '2088000000000001', 'webhook:alipay:H' || g,
    sha256(int8send(g)), 'H' || g, 'T' || g, 1234, 1234, 'CNY', now()
FROM n)
INSERT INTO paynotify.evidence (receipt_id, received_at, provider, tenant,
    headers, body, key_fingerprint, payload)
SELECT receipt_id, now(), 'alipay', 'shop1', 'Host: x', '', sha256(''),
    json_build_object('trade_no', 'T' || g, 'subject', repeat('x', 600))
FROM n
"""


def pull(dsn, seconds):
    """One worker: claims, does its work and acknowledges in one transaction.
    Returns how many events."""
    as_text = psycopg2.extensions.UNICODE
    db = psycopg2.connect(dsn)
    psycopg2.extras.register_default_json(db, loads=str)
    psycopg2.extras.register_default_jsonb(db, loads=str)
    psycopg2.extensions.register_type(
        psycopg2.extensions.new_type((1184,), "AS_TEXT", as_text), db)
    until, done = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        with db, db.cursor() as cursor:
            cursor.execute("SELECT * FROM paynotify.claim('bench', %s, '30 s')",
                           (BATCH,))
            rows = cursor.fetchall()
            cursor.execute("INSERT INTO work SELECT unnest(%s::text[])",
                           ([row[1] for row in rows],))
            cursor.execute("SELECT paynotify.ack_all(%s::uuid[])",
                           ([row[-1] for row in rows],))
        done += len(rows)
    return done


class Sink:
    """What events are pushed to."""

    def __init__(self, program, *more):
        self.process = subprocess.Popen([program, *more], stdout=subprocess.PIPE, text=True)
        atexit.register(self.process.kill)  # when a run fails
        self.port = int(self.process.stdout.readline())

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return json.loads(self.process.communicate()[0])


class Handoff:
    """Stages of the bench; see bench.py, which has the rest."""

    def prepared(self, seconds):
        """A migrated database with events to hand off."""
        name = self.database()
        conf = self.configure(measure.free_port())
        self.migrate(conf)
        measure.psql(MAKE_EVENTS.format(count=seconds * EVENTS_A_SECOND))
        measure.psql("CREATE TABLE work (id text)")
        measure.psql("ANALYZE")
        measure.psql("CHECKPOINT")
        return name

    def run_pull(self, seconds):
        measure.psql("SELECT paynotify.register_consumer('bench')")
        with multiprocessing.Pool(PULLERS) as pool:
            began = time.monotonic()
            done = sum(pool.starmap(
                pull, [(os.environ["PN_DSN"], seconds)] * PULLERS))
            took = time.monotonic() - began
        worked = int(measure.psql("SELECT count(DISTINCT id) FROM work"))
        if worked != done:
            raise RuntimeError(f"{worked} events worked on, {done} acknowledged")
        return done / took

    def pull(self):
        """By SQL, alone and with a snapshot held open all the time."""
        seconds = max(self.a.seconds, 8)
        rates = {"alone": [], "snapshot": []}
        for _ in range(self.a.runs):
            for name, rate in rates.items():
                database = self.prepared(seconds)
                held = None
                if name == "snapshot":
                    held = self.hold_snapshot()
                rate.append(self.run_pull(seconds))
                if held:
                    held.kill()
                    held.wait()
                self.drop(database)
        alone, snapshot = (self.median(rates[k]) for k in ("alone", "snapshot"))
        self.at_least(f"events pulled by SQL, {BATCH} a claim", alone, PULL_WANT,
                      "/s")
        self.ratio("pulled while an old snapshot is open", snapshot / alone, 0.8)

    def hold_snapshot(self):
        held = subprocess.Popen(["psql", "-qXAt"], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True)
        held.stdin.write("BEGIN ISOLATION LEVEL REPEATABLE READ;"
                         " SELECT count(*) FROM paynotify.consumers;\n")
        held.stdin.flush()
        held.stdout.readline()
        return held

    def endpoint(self, port):
        """A [deliver] section."""
        path = os.path.join(self.a.dir, "whsec.txt")
        if not os.path.exists(path):
            fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
            os.write(fd, b"whsec_" + base64.b64encode(secrets.token_bytes(32)))
            os.close(fd)
        return (f"[deliver app]\nurl = http://127.0.0.1:{port}/events\n"
                f"secret_file = {path}\nmax_in_flight = 256\n")

    def run_push(self, seconds, snapshot):
        database = self.prepared(seconds)
        held = self.hold_snapshot() if snapshot else None
        sink = Sink(self.sink_program())
        with self.daemon(None, self.endpoint(sink.port)):
            time.sleep(seconds)
        got = sink.stop()
        if held:
            held.kill()
            held.wait()
        attempts = int(measure.psql(
            "SELECT count(*) FROM paynotify.delivery_attempts"
            " WHERE outcome = 'done'"))
        if attempts != got["requests"]:
            raise RuntimeError(f"{got['requests']} pushed, {attempts} recorded")
        self.drop(database)
        return got["requests"] / got["seconds"]

    def sink_program(self):
        return os.path.join(self.a.build, "tests", "sink")

    def charge_sink(self):
        """An upstream of the guard."""
        return Sink(self.sink_program(), "--charge")

    def push(self):
        """By HTTP, from a backlog, to a sink beside the daemon."""
        seconds = max(self.a.seconds, 8)
        alone = [self.run_push(seconds, False) for _ in range(self.a.runs)]
        held = [self.run_push(seconds, True) for _ in range(self.a.runs)]
        self.at_least("events pushed by HTTP", self.median(alone), PUSH_WANT, "/s")
        self.ratio("pushed while an old snapshot is open",
                   self.median(held) / self.median(alone), 0.8)

    def latency(self):
        """From the receipt of a notification (the time in its id) to the
        answer of the endpoint."""
        seconds = max(self.a.seconds, 8)
        path = self.requests.get("paced-push", (seconds + 4) * PUSH_RATE * 2)
        p50, p99 = [], []
        for _ in range(self.a.runs):
            sink = Sink(self.sink_program())
            with self.daemon(more=self.endpoint(sink.port)) as server:
                measure.load(self.load_program, path, server.port, connections=16,
                             seconds=seconds, rate=PUSH_RATE, warmup=PUSH_RATE)
                time.sleep(1)
            sink.stop()
            got = measure.psql(
                "SELECT percentile_cont(ARRAY[0.5, 0.99]) WITHIN GROUP (ORDER BY"
                " extract(epoch FROM a.started_at) * 1000 + a.latency_us / 1000.0"
                " - ('x' || left(replace(e.receipt_id::text, '-', ''), 12))"
                "::bit(48)::int8)"
                " FROM paynotify.delivery_attempts a"
                " JOIN paynotify.event_log e USING (seq)"
                " WHERE a.outcome = 'done'")
            for values, value in zip((p50, p99), got.strip("{}").split(",")):
                values.append(float(value))
        self.fact(f"received to pushed at {PUSH_RATE}/s, p99",
                  f"{self.median(p99):.1f} ms")
        self.at_most(f"received to pushed at {PUSH_RATE}/s, p50",
                     self.median(p50), 10, "ms")

    def receiving(self):
        """At full speed, without and with an endpoint that gets it all."""
        rates = {"alone": [], "pushing": []}
        pushed = []
        for _ in range(self.a.runs):
            rates["alone"].append(self.run_daemon()["rps"])
            sink = Sink(self.sink_program())
            path = self.good()
            with self.daemon(more=self.endpoint(sink.port)) as server:
                line = self.closed(server, path)
            got = sink.stop()
            pushed.append(got["requests"] / max(got["seconds"], 0.1))
            rates["pushing"].append(self.settle("paynotify.events", line)["rps"])
        self.fact("pushed meanwhile", f"{self.median(pushed):,.0f}/s")
        self.ratio("received while pushing, of the rate without",
                   self.median(rates["pushing"]) / self.median(rates["alone"]), 0.6)
