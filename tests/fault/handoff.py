#!/usr/bin/env python3
"""Kills the daemon, the application and PostgreSQL with -9, at random moments of
the hand-off, while the endpoint is down, slow, talks garbage or closes early;
then looks at what arrived.

Notifications keep coming all the while. Their events are pushed to an endpoint
(sink.py) by two daemons, one of which receives too, and pulled by two workers
(worker.py). At the end each event has arrived at the endpoint at least once and
was worked on exactly once, both in the order of their orders, and none was in
flight twice.

Nothing waits for the back-off: when a failed event is due again stands in the
database, and is set to now. Leases run as they are, except that when both
daemons have been killed theirs are ended, as if the time had passed.

Run by run.sh, which makes the database and the keys.
"""
import argparse
import asyncio
import base64
import collections
import os
import random
import subprocess
import sys
import time

import crash
import sink as endpoint
import worker

ENDPOINT = "app"
ORDERS = 250                # of Alipay, and as many of WeChat
PLAN = (["daemon"] * 3 + ["both daemons"] * 2 + ["worker"] * 4
        + ["database"] * 3)
WORKERS = 2
REQUESTS_PER_SECOND = 60
IN_FLIGHT_MAX = 16
GOOD_BETWEEN = 50           # pushed with success, between bad times
HURRY_SECONDS = 0.2
WAIT_SECONDS_MAX = 45       # for what must happen; then the test fails
# The notifications of an order. Of an Alipay order a refund tells of the payment
# as well: a duplicate, or two events at once.
NOTIFICATIONS = {
    "alipay": ["payment.pending", "payment.succeeded", "refund.succeeded",
               "payment.finished"],
    "wechat": ["payment.succeeded", "refund.succeeded"],
}
ACCOUNTS = """[alipay shop1]
app_id = 2021000000000001
seller_id = 2088000000000001
public_key = keys/alipay.pub.txt
test = yes
test_private_key = keys/alipay.key
[wechat shop1]
mchid = 1900000001
appid = wx0000000000000001
api_v3_key_file = keys/apiv3.txt
public_key = PUB_KEY_ID_0000000000000000000001:keys/wechatpay.pub
test = yes
test_private_key = keys/wechatpay.key
"""


def configure(a, sink_port):
    os.umask(0o077)
    with open(os.path.join(a.dir, "whsec.txt"), "w", encoding="ascii") as f:
        f.write("whsec_" + base64.b64encode(os.urandom(32)).decode())
    with open(os.path.join(a.dir, "paynotifyd.conf"), "w", encoding="ascii") as f:
        f.write(f"[server]\nlisten = 127.0.0.1:{a.port}\n"
                f"[database]\ndsn = {os.environ['PN_DSN']}\nwriters = 8\n{ACCOUNTS}"
                f"[deliver {ENDPOINT}]\n"
                f"url = http://127.0.0.1:{sink_port}/events\n"
                f"secret_file = whsec.txt\nmax_in_flight = {IN_FLIGHT_MAX}\n"
                f"timeout = {endpoint.TIMEOUT_SECONDS * 1000:.0f}ms\n")


def ctl(a, *args):
    subprocess.run(
        [os.path.join(a.build, "paynotifyctl"), *args, "-c",
         os.path.join(a.dir, "paynotifyd.conf")],
        check=True, stdout=subprocess.DEVNULL)


def notifications(a):
    """What the providers will send, in any order. The same seed, the same order
    numbers: so several notifications tell of one order."""
    found = []
    for provider, events in NOTIFICATIONS.items():
        for event in events:
            folder = os.path.join(a.dir, f"{provider}-{event}")
            os.mkdir(folder)
            ctl(a, "trigger", event, "--account", f"{provider}/shop1", "--seed",
                "7", "--count", str(ORDERS), "--out", folder)
            for i, name in enumerate(sorted(os.listdir(folder))):
                with open(os.path.join(folder, name), "rb") as f:
                    # An order's notifications come about when the order is.
                    found.append((i + random.uniform(0, 10), crash.Record(
                        provider[0].upper(), f"{provider} {event} {i}",
                        f.read())))
    return [record for _, record in sorted(found, key=lambda f: f[0])]


class Worker:
    """An application that pulls, started again whenever it was killed."""

    def __init__(self, folder):
        self.log = open(os.path.join(folder, "worker.log"), "ab")
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [sys.executable, "-B", worker.__file__], stdin=subprocess.DEVNULL,
            stdout=self.log, stderr=self.log)

    def kill(self):
        if self.process.poll() is not None:
            raise RuntimeError("a worker ended by itself")
        self.process.kill()
        self.process.wait()


async def until(what, look):
    end = time.monotonic() + WAIT_SECONDS_MAX
    while not await look():
        if time.monotonic() > end:
            raise RuntimeError(f"{what}: not within {WAIT_SECONDS_MAX} s")
        await asyncio.sleep(0.1)


async def ask(query):
    return await asyncio.to_thread(crash.sql, query)


async def hurry():
    """What has failed is due at once, and never too often: none shall die."""
    while True:
        try:
            await ask(f"""UPDATE paynotify.deliveries d
                SET retry_at = clock_timestamp(), attempts = least(attempts, 3)
                WHERE ctid = ANY (ARRAY(SELECT d.ctid FROM paynotify.deliveries d
                    JOIN paynotify.consumers c ON c.id = d.consumer_id
                    WHERE c.name = '{ENDPOINT}' AND d.state = 'retry'
                        AND d.retry_at > clock_timestamp()
                    FOR UPDATE OF d SKIP LOCKED))""")
        except subprocess.CalledProcessError:
            pass            # the database is away
        await asyncio.sleep(HURRY_SECONDS)


async def end_leases(sink):
    """As if their time had passed; the daemons that held them are dead, and the
    sink has heard of it."""
    async def is_idle():
        return not sink.in_flight
    await until("the requests of dead daemons end", is_idle)
    for table, column in (("deliveries", "lease_expires_at"),
                          ("claims", "expires_at")):
        await ask(f"UPDATE paynotify.{table} SET {column} = clock_timestamp()"
                  f" WHERE {column} IS NOT NULL AND consumer_id = (SELECT id"
                  f" FROM paynotify.consumers WHERE name = '{ENDPOINT}')")


async def misbehave(sink, providers):
    """Each way once; good times between: while an endpoint fails the daemon
    leaves it alone, so that there would be little to go wrong."""
    for mode in random.sample(endpoint.MODES, len(endpoint.MODES)):
        enough = sink.successes + GOOD_BETWEEN

        async def is_good():
            return sink.successes >= enough or providers.taken == providers.total
        await until("the endpoint gets events again", is_good)
        if mode == "down":
            await sink.down()
        sink.mode = mode
        await asyncio.sleep(random.uniform(1, 2))
        if mode == "down":
            await sink.up()
        sink.mode = "good"
        print(f"handoff: the endpoint was {mode}: {len(sink.exchanges)} pushed,"
              f" {sink.successes} with success", flush=True)


async def kill(a, daemons, workers, sink):
    plan = random.sample(PLAN, len(PLAN))
    for n, what in enumerate(plan, 1):
        await asyncio.sleep(random.uniform(0.5, 2))
        if what in ("daemon", "worker"):
            one = random.choice(daemons if what == "daemon" else workers)
            one.kill()
            one.start()
        elif what == "both daemons":
            for one in daemons:
                one.kill()
            await end_leases(sink)
            for one in daemons:
                one.start()
        else:
            await crash.pg(a.pg, "pg_kill")
            await asyncio.sleep(random.uniform(0, 1))
            await crash.pg(a.pg, "pg_resume")
        print(f"handoff: crash {n}/{len(plan)} {what}: {len(sink.exchanges)} pushed",
              flush=True)


# Events that a consumer has not finished, or not yet come to.
LEFT = """SELECT c.name, count(*) FROM paynotify.consumers c
    CROSS JOIN paynotify.event_log e
    LEFT JOIN paynotify.deliveries d ON d.consumer_id = c.id AND d.seq = e.seq
    WHERE d.state <> 'done' OR d.state IS NULL AND e.seq > (SELECT max(m.seq)
        FROM paynotify.consumer_marks m WHERE m.consumer_id = c.id)
    GROUP BY c.name"""


async def run(a, daemons, sink, todo):
    """Until all that was sent is handed off."""
    for one in daemons:
        one.start()
    workers = [Worker(a.dir) for _ in range(WORKERS)]
    providers = crash.Providers(a.port, todo, REQUESTS_PER_SECOND)
    clients = [asyncio.create_task(providers.connection()) for _ in range(8)]
    beside = [asyncio.create_task(providers.pace()),
              asyncio.create_task(hurry())]
    try:
        await asyncio.gather(misbehave(sink, providers),
                             kill(a, daemons, workers, sink))
        providers.sending = False
        await asyncio.wait_for(asyncio.gather(*clients), WAIT_SECONDS_MAX)
        began = time.monotonic()

        async def is_done():
            return not await ask(LEFT)
        await until("everything is handed off", is_done)
        print(f"handoff: the rest took {time.monotonic() - began:.0f} s")
    finally:
        for task in [*beside, *clients]:
            task.cancel()
        for one in workers:
            one.kill()


def out_of_order(order_of, arrivals):
    """arrivals: (seq, when it came, when it succeeded or None). The events that
    came before an earlier one of their order had succeeded."""
    first, seqs = {}, collections.defaultdict(list)
    for seq, order in order_of.items():
        seqs[order].append(seq)
    for seq, _, succeeded in arrivals:
        if succeeded is not None:
            first[seq] = min(succeeded, first.get(seq, succeeded))
    return [seq for seq, came, _ in arrivals for earlier in seqs[order_of[seq]]
            if earlier < seq and first.get(earlier, came) >= came]


def numbers(query):
    return [tuple(map(int, line.split("|"))) for line in crash.sql(query)]


def judge(sink, statuses):
    """What must not be, and what there is of it."""
    order_of = dict(line.split("|") for line in crash.sql(
        "SELECT seq, tenant || '/' || account || '/' || out_trade_no"
        " FROM paynotify.events ORDER BY seq"))
    order_of = {int(seq): order for seq, order in order_of.items()}
    pushed = [e for e in sink.exchanges if e.seq in order_of]
    successes = collections.Counter(e.seq for e in pushed if e.success)
    works = numbers("SELECT n, seq FROM work ORDER BY n")
    worked = collections.Counter(seq for _, seq in works)
    # One that was settled while PostgreSQL crashed may be recorded twice.
    recorded = dict(numbers(
        "SELECT seq, count(DISTINCT started_at) FROM paynotify.delivery_attempts"
        " WHERE outcome = 'done' GROUP BY seq"))
    print(f"handoff: {len(order_of)} events of {len(set(order_of.values()))} orders,"
          f" {len(sink.exchanges)} requests, {sum(successes.values())} answered with"
          f" success, {len(works)} worked")
    return [
        ("events that never arrived at the endpoint",
         [seq for seq in order_of if not successes[seq]]),
        ("events pushed that are not recorded",
         [e.seq for e in sink.exchanges if e.seq not in order_of]),
        ("requests of an event while another one was in flight", sink.problems),
        ("pushed before an earlier event of the order had succeeded",
         out_of_order(order_of, [(e.seq, e.began, e.ended if e.success else None)
                                 for e in pushed])),
        ("events never worked on", [seq for seq in order_of if not worked[seq]]),
        ("events worked on twice", [seq for seq, n in worked.items() if n > 1]),
        ("worked on before an earlier event of the order",
         out_of_order(order_of, [(seq, n, n) for n, seq in works])),
        ("events that are done without a recorded attempt that was",
         [seq for seq in order_of if seq not in recorded]),
        ("attempts recorded as done that the endpoint did not answer so",
         [seq for seq, n in recorded.items() if n > successes[seq]]),
        ("events that are dead", numbers(
            "SELECT seq FROM paynotify.deliveries WHERE state = 'dead'")),
        ("daemons that did not end well", [s for s in statuses if s != 0]),
    ]


async def everything(a):
    sink = endpoint.Sink()
    await sink.up()
    configure(a, sink.port)
    ctl(a, "db", "migrate")
    crash.sql("CREATE TABLE work (n bigserial, seq bigint, order_no text);"
              f" SELECT paynotify.register_consumer('{worker.CONSUMER}')")
    program = os.path.join(a.build, "paynotifyd")
    daemons = [crash.Daemon(program, a.dir),
               crash.Daemon(program, a.dir, "--role", "deliver")]
    failed = None
    try:
        await run(a, daemons, sink, notifications(a))
    except Exception as e:  # whatever it is: nothing is left running
        failed = e
    statuses = [await asyncio.to_thread(one.stop) for one in daemons]
    await sink.down()
    checks = await asyncio.to_thread(judge, sink, statuses)
    return [*checks, ("faults of the run itself", [failed] if failed else [])]


def tell(a, wrong):
    for name in ("daemon.log", "worker.log"):
        with open(os.path.join(a.dir, name), encoding="utf-8",
                  errors="replace") as f:
            print("".join(f.readlines()[-30:]), end="")
    for what, which in wrong:
        print(f"handoff: {len(which)} {what}: {which[:5]}")


def main():
    parser = argparse.ArgumentParser()
    for name in ("--build", "--dir", "--pg"):
        parser.add_argument(name, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    a = parser.parse_args()
    random.seed(a.seed)
    print(f"handoff: seed {a.seed}", flush=True)
    began = time.monotonic()
    checks = asyncio.run(everything(a))
    wrong = [(what, which) for what, which in checks if which]
    if wrong:
        tell(a, wrong)
    print(f"handoff: {time.monotonic() - began:.0f} s")
    print(f"{len(checks) - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
