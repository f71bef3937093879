#!/usr/bin/env python3
"""Measures what the project promises of speed and memory, against the peers
that merchants run today, as ratios within one run: third digits move with the
machine, ratios hold. Run by run.sh, which makes the database.

Every closed-loop figure is the median of --runs runs, and the sides of a ratio
take turns, so that a slow minute of the machine hits both. Each run starts on
an empty database; a run counts only if every answer was right and the events
recorded are exactly the trades sent.
"""
import argparse
import os
import statistics
import subprocess
import sys
import time

import guard
import handoff
import measure

CONNECTIONS = 64
WARMUP = 1500
PEER_WARMUP = 300
ARCHIVE_KEYS = 5_000_000
IDLE_CONNECTIONS = 1000
LONE_REQUESTS = 40_000   # more than one client sends in three seconds
RATE = 1000
INSERT_CONNECTIONS = 4  # so many as keep up with RATE


class Row:
    """A promise: what was wanted and what was measured."""

    def __init__(self, name, want, got, ok):
        self.name, self.want, self.got, self.ok = name, want, got, ok


class Bench(handoff.Handoff, guard.Guard):
    def __init__(self, a):
        self.a = a
        self.requests = measure.Requests(a.dir)
        self.daemon_program = os.path.join(a.build, "paynotifyd")
        self.ctl = os.path.join(a.build, "paynotifyctl")
        self.load_program = os.path.join(a.build, "tests", "load")
        self.databases = 0
        self.rows, self.facts = [], []

    # what is measured

    def good(self):
        return self.requests.get("good", self.a.seconds * 26000 + WARMUP)

    def database(self, template="template0"):
        """An empty database, or a copy, and what leads there."""
        self.databases += 1
        name = f"bench{self.databases}"
        measure.psql(f"CREATE DATABASE {name} TEMPLATE {template}"
                     " STRATEGY file_copy", "postgres")
        os.environ["PGDATABASE"] = name
        os.environ["PN_DSN"] = (f"host={os.environ['PGHOST']}"
                                f" user={os.environ['PGUSER']} dbname={name}")
        return name

    def drop(self, name):
        measure.psql(f"DROP DATABASE {name} WITH (FORCE)", "postgres")

    def configure(self, port):
        subprocess.run(["bash", "-c", '. "$0"; pn_conf "$@"', self.a.conf_sh,
                        self.a.dir, str(port), "idle_timeout = 60s",
                        "max_connections = 8000"], check=True)
        return os.path.join(self.a.dir, "paynotifyd.conf")

    def migrate(self, conf):
        subprocess.run([self.ctl, "db", "migrate", "-c", conf], check=True,
                       stdout=subprocess.DEVNULL)

    def daemon(self, template="template0", more="", serves=None, **options):
        """A running daemon. more: further sections of its configuration; serves:
        the port that is used, when it is of one of them."""
        if template:
            self.database(template)
        port = measure.free_port()
        conf = self.configure(port)
        with open(conf, "a", encoding="ascii") as f:
            f.write(more)
        if template == "template0":
            self.migrate(conf)
        measure.psql("CHECKPOINT")
        return measure.Server([self.daemon_program, "-c", conf], serves or port,
                              self.a.dir, **options)

    def settle(self, table, line):
        """Exactly once, or the figure is worth nothing."""
        events = int(measure.psql(f"SELECT count(*) FROM {table}"))
        if events != line["distinct"]:
            raise RuntimeError(f"{events} events for {line['distinct']} trades")
        database = os.environ["PGDATABASE"]
        os.environ["PGDATABASE"] = "postgres"
        self.drop(database)
        return line

    def closed(self, server, path, warmup=WARMUP, **more):
        pg = int(self.a.pg_pid)
        cpu = [measure.cpu_seconds(p) for p in (server.process.pid, pg)]
        line = measure.load(self.load_program, path, server.port,
                            connections=CONNECTIONS,
                            seconds=self.a.seconds, warmup=warmup, **more)
        now = [measure.cpu_seconds(p) for p in (server.process.pid, pg)]
        line["server_us"], line["pg_us"] = (
            (b - c) * 1e6 / line["n"] for b, c in zip(now, cpu))
        return line

    def run_daemon(self, template="template0"):
        path = self.good()
        with self.daemon(template) as server:
            line = self.closed(server, path)
        return self.settle("paynotify.events", line)

    def run_pgbench(self):
        name = self.database()
        subprocess.run(["psql", "-qX", "-f", self.sql("field.sql")], check=True)
        measure.psql("CHECKPOINT")
        tps = measure.pgbench(self.sql("single.pgbench"), CONNECTIONS,
                              self.a.seconds)
        os.environ["PGDATABASE"] = "postgres"
        self.drop(name)
        return tps

    def sql(self, name):
        return os.path.join(measure.HERE, "sql", name)

    def run_peer(self, name):
        path = self.good()
        self.database()
        subprocess.run(["psql", "-qX", "-f", self.sql("field.sql")], check=True)
        measure.psql("CHECKPOINT")
        port = measure.free_port()
        folder = os.path.join(measure.HERE, "peers", name)
        args = {
            "fastapi": ["/usr/bin/python3", "-B", "-m", "uvicorn", "app:app",
                        "--app-dir", folder, "--host", "127.0.0.1", "--port",
                        str(port), "--backlog", "1024", "--timeout-keep-alive",
                        "75", "--loop", "uvloop", "--http", "httptools",
                        "--no-access-log", "--log-level", "warning"],
            "node": ["node", os.path.join(folder, "server.mjs")],
        }[name]
        env = {"PORT": str(port), "KEYS": os.path.join(self.a.dir, "keys")}
        with measure.Server(args, port, self.a.dir, env) as server:
            line = self.closed(server, path, PEER_WARMUP)
        return self.settle("events", line)

    # the promises

    def median(self, values):
        return statistics.median(values)

    def throughput(self):
        got = {"daemon": [], "pgbench": [], "fastapi": [], "node": []}
        lines = []
        for _ in range(self.a.runs):
            got["pgbench"].append(self.run_pgbench())
            lines.append(self.run_daemon())
            got["daemon"].append(lines[-1]["rps"])
            for peer in ("fastapi", "node"):
                got[peer].append(self.run_peer(peer)["rps"])
        rate = {k: self.median(v) for k, v in got.items()}
        for k, v in rate.items():
            self.fact(f"{k}, 64 connections", f"{v:,.0f}/s")
        for key, what in (("server_us", "CPU in the daemon"),
                          ("pg_us", "CPU in PostgreSQL")):
            self.fact(f"{what} a notification",
                      f"{self.median([x[key] for x in lines]):.0f} us")
        self.fact("p50 / p99 at 64 connections",
                  f"{self.median([x['p50_ms'] for x in lines]):.2f} /"
                  f" {self.median([x['p99_ms'] for x in lines]):.2f} ms")
        for peer, want in (("pgbench", 2), ("fastapi", 8), ("node", 8)):
            self.ratio(f"notifications/s against {peer}",
                       rate["daemon"] / rate[peer], want)

    def added(self):
        """What the database step adds: notifications that are recorded less
        forged ones, which are verified as well and refused right after."""
        seconds = max(self.a.seconds, 8)
        count = (seconds + 2) * RATE * 2
        lines = {"good": [], "forged": []}
        least = []
        for _ in range(self.a.runs):
            for name, more in (("good", ()), ("forged", ("--bad", "1"))):
                # Before and behind: a disk that was busy is slower for a while.
                least.append(self.least(INSERT_CONNECTIONS, seconds, rate=RATE))
                path = self.requests.get(f"paced-{name}", count, *more)
                with self.daemon() as server:
                    line = measure.load(
                        self.load_program, path, server.port, connections=64,
                        seconds=seconds, rate=RATE, warmup=2 * RATE)
                lines[name].append(line)
                if name == "good":
                    self.settle("paynotify.events", line)
        at = {(n, p): self.median([x[p] for x in v])
              for n, v in lines.items() for p in ("p50_ms", "p99_ms")}
        for p, want in (("p50_ms", 0.5), ("p99_ms", 2.0)):
            self.fact(f"{p[:3]} at {RATE}/s, recorded / refused",
                      f"{at['good', p]:.2f} / {at['forged', p]:.2f} ms")
            self.at_most(f"the database step adds at {RATE}/s, {p[:3]}",
                         at["good", p] - at["forged", p], want, "ms")
        self.fact(f"an INSERT of one number at {RATE}/s, p50 / p99",
                  f"{self.median([x[0] for x in least]):.2f} /"
                  f" {self.median([x[1] for x in least]):.2f} ms")

    def least(self, connections, seconds, **options):
        """What nothing that commits can be quicker than on this disk."""
        name = self.database()
        got = measure.insert_ms(self.a.dir, connections, seconds, **options)
        os.environ["PGDATABASE"] = "postgres"
        self.drop(name)
        return got

    def archive(self):
        full = self.database()
        conf = self.configure(measure.free_port())
        self.migrate(conf)
        measure.psql("INSERT INTO paynotify.idempotency_archive"
                     " (tenant, digest, request_hash, first_seen_at)"
                     " SELECT 'shop1', sha256(int8send(g)), sha256(int8send(-g)),"
                     f" now() - interval '90 days' FROM generate_series(1,"
                     f" {ARCHIVE_KEYS}) g")
        measure.psql("VACUUM ANALYZE paynotify.idempotency_archive")
        measure.psql("CHECKPOINT")
        rates = {"empty": [], "full": []}
        for _ in range(self.a.runs):
            rates["empty"].append(self.run_daemon()["rps"])
            rates["full"].append(self.run_daemon(full)["rps"])
        self.drop(full)
        empty, with_keys = (self.median(rates[k]) for k in ("empty", "full"))
        self.fact("with none / 5 million archived keys",
                  f"{empty:,.0f} / {with_keys:,.0f}/s")
        self.ratio("rate with 5 million archived keys", with_keys / empty, 0.85)

    def lone(self):
        """Beside its two halves: a request that needs no database, and a row that
        needs nothing else."""
        got = {"good": [], "forged": []}
        least = []
        for _ in range(self.a.runs):
            for name, more in (("good", ()), ("forged", ("--bad", "1"))):
                least.append(self.least(1, 3)[0])
                path = self.requests.get(f"lone-{name}", LONE_REQUESTS, *more)
                with self.daemon() as server:
                    got[name].append(measure.load(
                        self.load_program, path, server.port, connections=1,
                        seconds=3, warmup=200)["p50_ms"])
        self.at_most("a lone request, p50", self.median(got["good"]), 0.5, "ms")
        self.fact("a lone forged request, p50",
                  f"{self.median(got['forged']):.2f} ms")
        self.fact("a lone INSERT of one number, p50", f"{self.median(least):.2f} ms")

    def memory(self):
        request = measure.first_request(self.good())
        with self.daemon() as server:
            before = measure.rss_mb(server.process.pid)
            held = measure.idle_connections(server.port, request, IDLE_CONNECTIONS)
            idle = measure.rss_mb(server.process.pid)
            for s in held:
                s.close()
        self.fact("RSS after the start", f"{before:.1f} MB")
        self.at_most(f"RSS with {IDLE_CONNECTIONS} idle connections", idle, 32, "MB")

    def crowd(self):
        """Connections that do nothing, or send a byte a second."""
        path = self.good()
        p50 = {False: [], True: []}
        for _ in range(self.a.runs):
            for crowded in (False, True):
                with self.daemon() as server:
                    held = measure.Crowd(server.port) if crowded else None
                    p50[crowded].append(measure.load(
                        self.load_program, path, server.port, connections=1,
                        seconds=3, warmup=200)["p50_ms"])
                    if held and held.leave() > 0:
                        raise RuntimeError("some of the crowd were closed")
        alone, amid = self.median(p50[False]), self.median(p50[True])
        self.fact("p50 alone / beside the crowd", f"{alone:.2f} / {amid:.2f} ms")
        self.at_most("a lone request beside 4000 idle and 1000 slow clients, p50",
                     amid / alone, 1.25, "x")

    def start(self):
        request = measure.first_request(self.good())
        took = []
        for _ in range(max(self.a.runs, 3)):
            with self.daemon() as server:
                s = measure.socket.create_connection(("127.0.0.1", server.port))
                while b" 200 " not in measure.exchange(s, request)[:16]:
                    time.sleep(0.001)
                took.append((time.monotonic() - server.began) * 1000)
                s.close()
        self.at_most("start to the first success", self.median(took), 200, "ms")

    # the table

    def fact(self, name, got):
        self.facts.append((name, got))
        print(f"   {name}: {got}", flush=True)

    def ratio(self, name, got, want):
        self.add(Row(name, f">= {want} x", f"{got:.2f} x", got >= want))

    def at_least(self, name, got, want, unit):
        self.add(Row(name, f">= {want:,}{unit}", f"{got:,.0f}{unit}", got >= want))

    def at_most(self, name, got, want, unit):
        self.add(Row(name, f"<= {want} {unit}", f"{got:.2f} {unit}", got <= want))

    def add(self, row):
        self.rows.append(row)
        print(f"{'ok' if row.ok else 'NO'} {row.name}: {row.got}"
              f" (want {row.want})", flush=True)

    def table(self):
        out = ["| promise | want | got | |", "|---|---|---|---|"]
        out += [f"| {r.name} | {r.want} | {r.got} | {'ok' if r.ok else 'NO'} |"
                for r in self.rows]
        out += ["", "| measured | |", "|---|---|"]
        out += [f"| {name} | {got} |" for name, got in self.facts]
        return "\n".join(out) + "\n"


STAGES = ("throughput", "added", "archive", "lone", "memory", "crowd", "start",
          *handoff.STAGES, *guard.STAGES)


def main():
    parser = argparse.ArgumentParser()
    for name in ("--build", "--dir", "--conf-sh", "--pg-pid"):
        parser.add_argument(name, required=True)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--only", nargs="*", choices=STAGES, default=STAGES)
    parser.add_argument("--write", metavar="FILE")
    a = parser.parse_args()
    bench = Bench(a)
    for name in a.only:
        print(f"== {name}", flush=True)
        getattr(bench, name)()
    print("\n" + bench.table())
    if a.write:
        with open(a.write, "w", encoding="utf-8") as f:
            f.write("# Results of the bench\n\n"
                    "Written by `tests/bench/run.sh --write`; load generator,"
                    " server and PostgreSQL (fsync on)\nshare"
                    f" {os.cpu_count()} cores; medians of {a.runs} runs of"
                    f" {a.seconds} s.\n\n" + bench.table())
    bad = sum(not r.ok for r in bench.rows)
    print(f"{len(bench.rows) - bad} passed, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
