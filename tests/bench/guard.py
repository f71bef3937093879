"""What is promised of the guard's speed: the gateway before an upstream that
answers at once (sink --charge), beside the same guard written in FastAPI and the
Express middleware with Redis of the field.

The peers do the upstream's work themselves, without a request to another
process, and Redis may lose the last second: both to their advantage. What
Express does when Redis may lose nothing ("express-sync") is shown beside it: a
promise is made against the field's. All answers must be right, and each key's
work done once.
"""
import os
import shutil
import subprocess

import charges
import measure

STAGES = ("guard",)
CONNECTIONS = 64
WARMUP = 300
FEW, MANY = 1000, 100_000  # keys that are replayed: all remembered, and not
REPLAYS_WANT = 20_000
CLICKS = 8

ROUTE = """
[guard]
listen = 127.0.0.1:{port}
[guard charges]
path = POST /v1/charges
upstream = http://127.0.0.1:{upstream}/v1/charges
tenant = shop1
"""


class Redis:
    """Appends to a file. sync: when that is synced; the field has "everysec",
    PostgreSQL does what "always" does."""

    def __init__(self, folder, sync):
        self.folder = os.path.join(folder, "redis")
        os.makedirs(self.folder)
        self.port = measure.free_port()
        self.server = measure.Server(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1",
             "--dir", self.folder, "--save", "", "--appendonly", "yes",
             "--appendfsync", sync], self.port, self.folder)

    def keys(self):
        out = subprocess.run(["redis-cli", "-p", str(self.port), "dbsize"],
                             check=True, capture_output=True, text=True)
        return int(out.stdout)

    def stop(self):
        self.server.stop()
        shutil.rmtree(self.folder)


class Guard:
    """A stage of the bench; see bench.py, which has the rest."""

    def charges(self, count, clicks=1):
        path = os.path.join(self.a.dir, f"charges-{clicks}")
        made = self.charges_made.get(clicks, 0)
        if made < count:
            charges.write(path, count, clicks)
            self.charges_made[clicks] = count
        return path

    def gateway(self, sink):
        port = measure.free_port()
        return self.daemon(
            more=ROUTE.format(port=port, upstream=sink.port), serves=port)

    def done_once(self, what, done, line):
        if done != line["distinct"]:
            raise RuntimeError(f"{what}: {done} done for {line['distinct']} keys")

    def new_and_again(self, server):
        """New keys, then FEW of them (all, where there are less) over and
        over; what both came to."""
        path = self.charges(self.a.seconds * 26000 + WARMUP)
        new = self.closed(server, path, WARMUP)
        again = self.replays(server, path, min(FEW, new["distinct"]))
        return new, again

    def replays(self, server, path, keys):
        return self.closed(server, path, WARMUP, max=keys,
                           repeat=self.a.seconds * 100_000 // keys)

    def leave(self, name):
        os.environ["PGDATABASE"] = "postgres"
        self.drop(name)

    def run_gateway(self):
        sink = self.charge_sink()
        with self.gateway(sink) as server:
            lines = self.new_and_again(server)
        self.done_once("gateway", sink.stop()["requests"], lines[0])
        self.done_once("gateway", int(measure.psql(
            "SELECT count(*) FROM paynotify.guard_keys"
            " WHERE state = 'COMPLETED'")), lines[0])
        self.leave(os.environ["PGDATABASE"])
        return lines

    def run_fastapi(self):
        name = self.database()
        subprocess.run(["psql", "-qX", "-f", self.sql("guard.sql")], check=True)
        measure.psql("CHECKPOINT")
        port = measure.free_port()
        program = os.path.join(measure.HERE, "peers", "fastapi", "guard.py")
        with measure.Server(["/usr/bin/python3", "-B", program], port,
                            self.a.dir, {"PORT": str(port)}) as server:
            lines = self.new_and_again(server)
        self.done_once("fastapi", int(measure.psql(
            "SELECT count(*) FROM guard_keys WHERE status = 201")), lines[0])
        self.leave(name)
        return lines

    def run_express(self, sync="everysec"):
        redis, port = Redis(self.a.dir, sync), measure.free_port()
        try:
            program = os.path.join(measure.HERE, "peers", "node", "guard.mjs")
            env = {"PORT": str(port), "REDIS": str(redis.port),
                   "NODE_ENV": "production"}
            with measure.Server(["node", program], port, self.a.dir,
                                env) as server:
                lines = self.new_and_again(server)
            self.done_once("express", redis.keys(), lines[0])
        finally:
            redis.stop()
        return lines

    def run_many(self):
        """Replays of more keys than are remembered."""
        path = self.charges(MANY)
        sink = self.charge_sink()
        with self.gateway(sink) as server:
            first = measure.load(self.load_program, path, server.port, max=MANY,
                                 connections=CONNECTIONS, seconds=300)
            line = self.replays(server, path, MANY)
        self.done_once("replays", sink.stop()["requests"], first)
        self.leave(os.environ["PGDATABASE"])
        return line

    def run_clicks(self):
        """Each key by CLICKS connections at once: one asks the upstream."""
        path = self.charges(self.a.seconds * 60000, CLICKS)
        sink = self.charge_sink()
        with self.gateway(sink) as server:
            line = self.closed(server, path, WARMUP)
        self.done_once("clicks", sink.stop()["requests"], line)
        self.leave(os.environ["PGDATABASE"])
        return line

    def run_paced(self, through, **options):
        """The latencies of a load, straight to the upstream or not."""
        path = self.charges(self.a.seconds * 26000 + WARMUP)
        sink = self.charge_sink()
        if through:
            with self.gateway(sink) as server:
                line = measure.load(self.load_program, path, server.port, **options)
        else:
            line = measure.load(self.load_program, path, sink.port, **options)
        self.done_once("paced", sink.stop()["requests"], line)
        if through:
            self.leave(os.environ["PGDATABASE"])
        return line

    def added_by_guard(self, what, **options):
        """Medians of p50 and p99, and what the gateway adds to them."""
        lines = {True: [], False: []}
        for _ in range(self.a.runs):
            for through, got in lines.items():
                got.append(self.run_paced(through, **options))
        at = {(t, p): self.median([x[p] for x in v])
              for t, v in lines.items() for p in ("p50_ms", "p99_ms")}
        for p in ("p50_ms", "p99_ms"):
            self.fact(f"{what}, {p[:3]}, through the gateway / straight",
                      f"{at[True, p]:.2f} / {at[False, p]:.2f} ms")
        return [at[True, p] - at[False, p] for p in ("p50_ms", "p99_ms")]

    def guard(self):
        self.charges_made = {}
        sides = {"gateway": self.run_gateway, "fastapi": self.run_fastapi,
                 "express": self.run_express,
                 "express-sync": lambda: self.run_express("always")}
        lines = {name: [] for name in sides}
        many, clicks = [], []
        for _ in range(self.a.runs):
            for name, run in sides.items():
                lines[name].append(run())
            many.append(self.run_many())
            clicks.append(self.run_clicks())
        new, again = ({n: [x[i] for x in v] for n, v in lines.items()}
                      for i in (0, 1))
        self.guard_costs("a new key", new["gateway"])
        self.guard_costs("a replay", again["gateway"])
        self.guard_costs("a replay, 100,000 keys", many)
        self.guard_rates("new keys", new)
        self.guard_rates("replays", again)
        self.fact(f"each key by {CLICKS} at once, answers",
                  f"{self.rate(clicks):,.0f}/s")
        for keys, got in ((FEW, again["gateway"]), (MANY, many)):
            self.at_least(f"guard: replays of {keys:,} keys", self.rate(got),
                          REPLAYS_WANT, "/s")
        for peer in ("fastapi", "express"):
            self.ratio(f"guard: new keys/s against {peer}",
                       self.rate(new["gateway"]) / self.rate(new[peer]), 4)
        self.fact("guard: new keys/s against express-sync",
                  f"{self.rate(new['gateway']) / self.rate(new['express-sync']):.2f}x")
        self.guard_latency(int(self.rate(new["gateway"]) / 2))

    def rate(self, lines):
        return self.median([x["rps"] for x in lines])

    def guard_costs(self, what, lines):
        self.fact(f"CPU in the daemon / PostgreSQL, {what}",
                  f"{self.median([x['server_us'] for x in lines]):.0f} /"
                  f" {self.median([x['pg_us'] for x in lines]):.0f} us")

    def guard_rates(self, what, lines):
        for name, got in lines.items():
            self.fact(f"guard: {what}, {name}, 64 connections",
                      f"{self.rate(got):,.0f}/s, p50 / p99"
                      f" {self.median([x['p50_ms'] for x in got]):.2f} /"
                      f" {self.median([x['p99_ms'] for x in got]):.2f} ms")

    def guard_latency(self, rate):
        p50, p99 = self.added_by_guard(
            f"guard at {rate}/s", connections=CONNECTIONS,
            seconds=max(self.a.seconds, 8), rate=rate, warmup=2000)
        self.at_most("guard: adds at half of its peak, p50", p50, 1, "ms")
        self.at_most("guard: adds at half of its peak, p99", p99, 3, "ms")
        least = [self.least(1, 3, commits=2) for _ in range(self.a.runs)]
        p50, _ = self.added_by_guard("guard: a lone client", connections=1,
                                     seconds=3, warmup=200)
        self.fact("guard: adds to a lone client, p50", f"{p50:.2f} ms")
        # A claim is committed before the upstream is asked, its answer before the
        # client has it.
        self.fact("two INSERTs of one number, one behind the other, p50 / p99",
                  f"{self.median([x[0] for x in least]):.2f} /"
                  f" {self.median([x[1] for x in least]):.2f} ms")
