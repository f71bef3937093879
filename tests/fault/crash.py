#!/usr/bin/env python3
"""Kills the daemon with -9 twenty times and PostgreSQL five times, at random
moments under load, and looks at what is left.

A client plays the providers: it keeps sending each notification until it is
answered with success, and writes down each success it saw. Whatever was
answered with success must be in paynotify.events exactly once - looked at
right after each crash of the database, so that a later repeat of the same
trade cannot hide a loss, and at the end, when every notification must have
been taken.

Run by run.sh, which makes the database, the requests and the configuration.
"""
import argparse
import asyncio
import collections
import glob
import os
import random
import signal
import subprocess
import sys
import time

DAEMON_KILLS = 20
PG_KILLS = 5
CONNECTIONS = 48
REQUESTS_PER_SECOND = 320
BURST = 32                  # sent at once: a batch of the group commit
RETRY_SECONDS = 0.2
DRAIN_SECONDS_MAX = 60
REPLY_SECONDS_MAX = 10
SUCCESS = {"A": b"success", "W": b'{"code":"SUCCESS"}'}


class Record:
    """One prepared request: its bytes, whose it is, which trade it tells of."""

    def __init__(self, kind, trade, data):
        self.kind, self.trade, self.data = kind, trade, data


def records(path):
    with open(path, "rb") as f:
        data = f.read()
    at, found = 0, []
    while at < len(data):
        end = data.index(b"\n", at)
        _, size, kind, trade = data[at:end].split()
        found.append(Record(kind.decode(), int(trade),
                            data[end + 1:end + 1 + int(size)]))
        at = end + 1 + int(size)
    return found


class Providers:
    """Sends until it hears success."""

    def __init__(self, port, todo, rate=REQUESTS_PER_SECOND):
        self.port, self.rate = port, rate
        self.todo = collections.deque(todo)
        self.total = len(todo)
        self.acked = collections.Counter()  # trade -> replies of success
        self.answers = collections.Counter()
        self.taken = 0
        self.sending = True
        self.tokens = asyncio.Semaphore(0)

    async def pace(self):
        """Bursts at the rate while there are crashes; then what is left."""
        while self.taken < self.total:
            for _ in range(BURST):
                self.tokens.release()
            await asyncio.sleep(BURST / self.rate if self.sending else 0.002)
        for _ in range(CONNECTIONS):
            self.tokens.release()   # none waits for what will not come

    async def connection(self):
        stream = None
        while self.taken < self.total:
            await self.tokens.acquire()
            if not self.todo:
                await asyncio.sleep(0.01)
                continue
            record = self.todo.popleft()
            try:
                if stream is None:
                    stream = await asyncio.open_connection("127.0.0.1", self.port)
                taken = await asyncio.wait_for(self.exchange(stream, record),
                                               REPLY_SECONDS_MAX)
            except (OSError, EOFError, ValueError, asyncio.TimeoutError) as e:
                self.answers[type(e).__name__] += 1
                taken = False
                if stream is not None:
                    stream[1].close()
                stream = None
            if not taken:
                self.todo.append(record)
                await asyncio.sleep(RETRY_SECONDS)
        if stream is not None:
            stream[1].close()

    async def exchange(self, stream, record):
        reader, writer = stream
        writer.write(record.data)
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        size = [x.split(b":")[1] for x in lines
                if x.lower().startswith(b"content-length:")]
        body = await reader.readexactly(int(size[0]))
        status = int(lines[0].split()[1])
        self.answers[status] += 1
        if status != 200:
            return False
        if body != SUCCESS[record.kind]:
            raise RuntimeError(f"status 200 with body {body!r}")
        self.acked[record.trade] += 1
        self.taken += 1
        return True


class Daemon:
    """paynotifyd, started again whenever it was killed."""

    def __init__(self, program, folder, *args):
        self.args = [program, "-c", os.path.join(folder, "paynotifyd.conf"),
                     *args]
        self.log = open(os.path.join(folder, "daemon.log"), "ab")
        self.process = None

    def start(self):
        self.process = subprocess.Popen(self.args, stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log)

    def blocks(self, number):
        """Any thread: one that waits for a signal has it let through."""
        for path in glob.glob(f"/proc/{self.process.pid}/task/*/status"):
            with open(path) as status:
                masks = dict(line.split(":", 1) for line in status)
            if int(masks.get("SigBlk", "0"), 16) >> number - 1 & 1:
                return True
        return False

    def kill(self):
        if self.process.poll() is not None:
            raise RuntimeError("the daemon ended by itself, status"
                               f" {self.process.returncode}")
        self.process.kill()
        self.process.wait()

    def stop(self):
        """Its exit status. One that was started a moment ago is let come so
        far that it waits for signals: before that any would kill it."""
        while self.process.poll() is None and not self.blocks(signal.SIGTERM):
            time.sleep(0.01)
        self.process.terminate()
        try:
            return self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return "none, it hung at SIGTERM"


def sql(text):
    out = subprocess.run(["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", text],
                         check=True, capture_output=True, text=True).stdout
    return out.split("\n")[:-1]


def recorded():
    """trade -> how many events. The trade's number ends its out_trade_no."""
    return collections.Counter(
        int(no[-10:]) for no in sql("SELECT out_trade_no FROM paynotify.events"))


async def pg(script, function):
    p = await asyncio.create_subprocess_exec(
        "bash", "-c", f'. "$0"; {function}', script,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    if await p.wait():
        raise RuntimeError(f"{function} failed")


def lost(acked):
    events = recorded()
    return sorted(t for t in acked if events[t] != 1)


async def crash_database(a, providers, problems):
    await pg(a.pg, "pg_kill")
    acked = list(providers.acked)
    await asyncio.sleep(random.uniform(0, 1))
    await pg(a.pg, "pg_resume")
    missing = await asyncio.to_thread(lost, acked)
    if missing:
        problems.append(f"after a crash of PostgreSQL {len(missing)} events that"
                        " were answered with success are not there once:"
                        f" {missing[:5]}")


async def crashes(a, daemon, providers, problems):
    plan = ["daemon"] * DAEMON_KILLS + ["database"] * PG_KILLS
    random.shuffle(plan)
    for n, what in enumerate(plan, 1):
        await asyncio.sleep(random.uniform(0.3, 2.5))
        if what == "daemon":
            daemon.kill()
            await asyncio.sleep(random.choice([0, 0.1]))
            daemon.start()
        else:
            await crash_database(a, providers, problems)
        print(f"crash {n}/{len(plan)} {what}: {providers.taken} taken,"
              f" {len(providers.todo)} to send", flush=True)
    providers.sending = False


async def load(a, daemon, problems):
    providers = Providers(a.port, records(os.path.join(a.dir, "requests.bin")))
    clients = [asyncio.create_task(providers.connection())
               for _ in range(CONNECTIONS)]
    pace = asyncio.create_task(providers.pace())
    await crashes(a, daemon, providers, problems)
    done, pending = await asyncio.wait(clients, timeout=DRAIN_SECONDS_MAX)
    for task in [*pending, pace]:
        task.cancel()
    for task in done:
        if task.exception():
            raise task.exception()
    if providers.taken < providers.total:
        problems.append(f"{providers.total - providers.taken} notifications were"
                        " never taken")
    return providers


# What must be 0 when all is over.
ZERO = [
    ("events that share a key",
     "SELECT count(*) - count(DISTINCT (tenant, key)) FROM paynotify.events"),
    ("events without a receipt",
     "SELECT count(*) FROM paynotify.event_log e WHERE NOT EXISTS"
     " (SELECT FROM paynotify.receipts r WHERE r.id = e.receipt_id)"),
    ("events without evidence",
     "SELECT count(*) FROM paynotify.event_log e WHERE NOT EXISTS"
     " (SELECT FROM paynotify.evidence v WHERE v.receipt_id = e.receipt_id)"),
    ("evidence of no event",
     "SELECT count(*) FROM paynotify.evidence v WHERE NOT EXISTS"
     " (SELECT FROM paynotify.event_log e WHERE e.receipt_id = v.receipt_id)"),
    ("keys without an event, less events without a key",
     "SELECT (SELECT count(*) FROM paynotify.idempotency_keys)"
     " - (SELECT count(*) FROM paynotify.events)"),
    ("quarantined honest notifications",
     "SELECT count(*) FROM paynotify.quarantine"),
]


def judge(providers, problems):
    events = recorded()
    wrong = lost(providers.acked)
    if wrong:
        problems.append(f"{len(wrong)} trades answered with success have no event,"
                        f" or several: {wrong[:5]}")
    never = [t for t in events if t not in providers.acked]
    if never:
        problems.append(f"{len(never)} events of trades never answered: {never[:5]}")
    for what, query in ZERO:
        n = int(sql(query)[0])
        if n:
            problems.append(f"{n} {what}")
    receipts = int(sql("SELECT count(*) FROM paynotify.receipts")[0])
    if receipts < providers.taken:
        problems.append(f"{receipts} receipts for {providers.taken} replies of"
                        " success")
    print(f"crash: {providers.taken} replies of success, {len(events)} events,"
          f" {receipts} receipts, answers {dict(providers.answers)}")


def main():
    parser = argparse.ArgumentParser()
    for name in ("--daemon", "--dir", "--pg"):
        parser.add_argument(name, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    a = parser.parse_args()
    random.seed(a.seed)
    print(f"crash: seed {a.seed}", flush=True)
    began, problems = time.monotonic(), []
    daemon = Daemon(a.daemon, a.dir)
    daemon.start()
    try:
        providers = asyncio.run(load(a, daemon, problems))
    finally:
        status = daemon.stop()
    if status != 0:
        problems.append(f"the daemon's exit status was {status}")
    judge(providers, problems)
    for p in problems:
        print(f"crash: {p}")
    if problems:
        with open(os.path.join(a.dir, "daemon.log"), encoding="utf-8",
                  errors="replace") as f:
            print("".join(f.readlines()[-30:]), end="")
    print(f"crash: {time.monotonic() - began:.0f} s")
    print(f"{0 if problems else 1} passed, {1 if problems else 0} failed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
