"""The charges API, by itself and behind two gateways on one database: whatever
is clicked, killed or lost, an order is charged once."""
import asyncio
import collections
import itertools
import json
import os
import resource
import signal
import socket
import subprocess
import threading
import unittest
import urllib.request

import psycopg

from provider import Provider, make_keys
from test_examples import BUILD, DIR, PYTHON, WAIT_SECONDS_MAX, listening, wait

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(DIR, "charges")
ORDERS = 100
CLICKS = 10
ATTEMPT_SECONDS_MAX = 20    # longer than the gateway's wait and timeout
AFTER_ERROR_SECONDS = 0.1

Answer = collections.namedtuple("Answer", "status headers body")


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


async def request(port, path, body, headers):
    """One try, on a connection of its own. OSError, EOFError: no answer."""
    data = json.dumps(body).encode()
    head = "".join(f"{n}: {v}\r\n" for n, v in headers.items())
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"POST {path} HTTP/1.1\r\nHost: shop\r\n{head}"
                     "Content-Type: application/json\r\nContent-Length:"
                     f" {len(data)}\r\n\r\n".encode() + data)
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        got = {n.lower(): v.strip() for n, _, v in
               (line.partition(":") for line in lines[1:-2])}
        return Answer(int(lines[0].split()[1]), got, await reader.readexactly(
            int(got["content-length"])))
    finally:
        writer.close()


async def click(ports, path, body, key):
    """What a good client does: the same key until there is an answer."""
    for port in ports:
        try:
            got = await asyncio.wait_for(
                request(port, path, body, {"Idempotency-Key": key}),
                ATTEMPT_SECONDS_MAX)
        except (OSError, EOFError, asyncio.TimeoutError):
            await asyncio.sleep(AFTER_ERROR_SECONDS)
            continue
        after = got.headers.get("retry-after")
        if got.status < 500 and not (got.status == 409 and after):
            return got
        await asyncio.sleep(int(after or 1))


class Process:
    """One that is killed, and started again."""

    def __init__(self, port, *args, **environment):
        self.port, self.args = port, args
        self.environment = environment
        self.log = f"{FOLDER}/{port}.log"
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.child = subprocess.Popen(
                self.args, cwd=HERE, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, env={**os.environ, **self.environment})

    def listens(self):
        def there():
            if self.child.poll() is not None:
                with open(self.log, encoding="utf-8") as f:
                    raise AssertionError(f"it has ended: {f.read()[-2000:]}")
            return listening(self.port)

        wait(f"{self.args[0]} listens", there)

    def kill(self):
        self.child.kill()
        self.child.wait()

    def kill_and_start(self):
        self.kill()
        self.start()

    def stop(self):
        self.child.send_signal(signal.SIGTERM)
        return self.child.wait(WAIT_SECONDS_MAX)


class Charges(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.mkdir(FOLDER)
        make_keys(FOLDER)
        cls.db = psycopg.connect("", autocommit=True)
        with open(os.path.join(HERE, "charges.sql"), encoding="ascii") as f:
            cls.db.execute(
                "CREATE ROLE shop_charges LOGIN;"
                "CREATE SCHEMA shop_charges AUTHORIZATION shop_charges;"
                "SET ROLE shop_charges; SET search_path = shop_charges;"
                + f.read() + "RESET ROLE")
        cls.provider = Provider(FOLDER)
        cls.api_port, *cls.ports = free_ports(3)    # and of the gateways
        cls.api = Process(
            cls.api_port, PYTHON, "-B", "-m", "uvicorn", "charges:app",
            "--port", str(cls.api_port), "--log-level", "warning",
            PGUSER="shop_charges", **cls.provider.settings())
        cls.daemons = []
        # A socket a click; 1,024 files are the usual soft limit.
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    @classmethod
    def tearDownClass(cls):
        for process in (*cls.daemons, cls.api):
            process.kill()
        cls.provider.close()
        cls.db.close()

    def setUp(self):
        self.api.listens()

    def tearDown(self):
        self.forget()

    def forget(self):
        self.provider.before_answer = lambda out_trade_no, count: True
        self.provider.spoil = lambda text: text
        self.provider.orders.clear()
        self.provider.calls.clear()
        self.provider.wrong.clear()
        self.db.execute("TRUNCATE charges")

    def rows(self, columns):
        return self.db.execute(
            f"SELECT {columns} FROM charges ORDER BY order_id").fetchall()

    # The API by itself, asked as the gateway asks it

    def ask(self, body, key="k", attempt=1):
        headers = {"Idempotency-Key": key, "Idempotency-Attempt": attempt}
        return asyncio.run(request(
            self.api_port, "/v1/charges", body,
            {n: v for n, v in headers.items() if v is not None}))

    @staticmethod
    def body(number, name, **changed):
        return {"order_id": f"order-{number:04d}", "amount": 1000 + number,
                "provider": name, "subject": f"茶 {number} & more", **changed}

    def test_1_an_order_at_each(self):
        """The request or the answer of a provider would not be understood."""
        for n, name in enumerate(("alipay", "wechat")):
            got = self.ask(self.body(n, name), f"k{n}")
            self.assertEqual(got.status, 201, got)
            code = json.loads(got.body)["code"]
            self.assertIn(f"order-{n:04d}x1", code)
            self.assertEqual(got.headers["location"],
                             f"/v1/charges/order-{n:04d}")
            with urllib.request.urlopen(
                    f"http://127.0.0.1:{self.api_port}"
                    + got.headers["location"], timeout=10) as again:
                self.assertEqual(again.read(), got.body)
            self.assertEqual(self.provider.orders[f"order-{n:04d}"],
                             (name, 1000 + n, f"茶 {n} & more"))
        self.assertEqual(self.provider.wrong, [])

    def test_2_what_is_refused_for_good(self):
        """An answer that the gateway keeps, for what may still succeed; or an
        order that is not what was asked for."""
        for n, name in enumerate(("alipay", "wechat")):
            number = f"order-{n:04d}"
            self.provider.orders[number] = (name, 5, "another")
            self.assertEqual(self.ask(self.body(n, name), f"k{n}").status, 422)
        self.assertEqual(self.provider.wrong, [])
        for changed in ({"amount": 0}, {"amount": "1"}, {"amount": 1.5},
                        {"provider": "paypal"}, {"subject": ""},
                        {"order_id": "a b c d"}, {"order_id": "x" * 33}):
            self.assertEqual(self.ask(self.body(7, "alipay", **changed)).status,
                             422, changed)
        self.assertEqual(self.ask(self.body(7, "alipay"), "k", None).status,
                         422)
        self.assertEqual(len(self.provider.calls), 2)

    def test_3_an_answer_that_nobody_signed(self):
        """A forged code would be shown to the buyer."""
        code = ("order-0007x", "order-0008x")
        again = '{"alipay_trade_precreate_response":'
        for name, spoils in (
                ("alipay", [code, ('"sign"', '"sing"'),
                            (again, again + "{}," + again[1:])]),
                ("wechat", [code, ("}", " }")])):
            body = self.body(7, name)
            for old, new in spoils:
                self.provider.spoil = lambda text: text.replace(old, new)
                got = self.ask(body)
                self.assertEqual(got.status, 503, got)
                self.assertEqual(got.headers["retry-after"], "1")
            self.assertEqual(self.rows("code"), [(None,)])
            self.provider.spoil = lambda text: text
            self.assertEqual(self.ask(body, attempt=2).status, 201)
            self.forget()

    def test_4_a_stale_attempt(self):
        """One that was paused would act beside the next, or overwrite it."""
        held, go = threading.Event(), threading.Event()

        def hold(number, count):
            if count:       # the first attempt is at the provider
                held.set()
                go.wait(WAIT_SECONDS_MAX)
            return True

        self.provider.before_answer = hold
        stale = []
        thread = threading.Thread(
            target=lambda: stale.append(self.ask(self.body(1, "wechat"))))
        thread.start()
        self.assertTrue(held.wait(WAIT_SECONDS_MAX))
        second = self.ask(self.body(1, "wechat"), attempt=2)
        go.set()
        thread.join()
        self.assertEqual((second.status, stale[0].status), (201, 409))
        self.assertEqual(self.ask(self.body(1, "wechat")).status, 409)
        third = self.ask(self.body(1, "wechat"), attempt=3)
        self.assertEqual(third.body, second.body)   # and nobody is asked
        self.assertEqual(self.provider.calls, {"order-0001": 2})
        self.assertEqual(self.ask(self.body(1, "wechat"), "k2", 4).status, 409)
        self.assertEqual(self.ask(self.body(1, "wechat", amount=1),
                                  attempt=4).status, 409)
        self.assertEqual(self.rows("attempt"), [(3,)])

    # Behind the gateways

    def start_daemons(self):
        """Two of one database, with routes to one API that differ in what an
        unknown end means, and in how soon a slow holder has lost its key."""
        for port, other in zip(self.ports, free_ports(2)):
            file = f"{FOLDER}/{port}.conf"
            with open(file, "w", encoding="ascii") as f:
                f.write(f"""[server]
listen = 127.0.0.1:{other}
[database]
dsn = {os.environ["PN_DSN"]}
[guard]
listen = 127.0.0.1:{port}
""")
                for path, unknown, lease in (("v1", "release", "2s"),
                                             ("v2", "retry", "2s"),
                                             ("v3", "retry", "1m")):
                    f.write(f"""[guard {path}]
path = POST /{path}/charges
upstream = http://127.0.0.1:{self.api_port}/v1/charges
tenant = shop1
timeout = 10s
wait = 5s
lease = {lease}
unknown = {unknown}
""")
            os.chmod(file, 0o600)
            self.daemons.append(Process(port, f"{BUILD}/paynotifyd", "-c",
                                        file))
        for daemon in self.daemons:
            daemon.listens()

    def storm(self, name, *paths):
        """Each order is clicked at both gateways at the same moment."""
        async def everything():
            keys = [(n, f"/{paths[n // 2 % len(paths)]}/charges",
                     self.body(n, ("alipay", "wechat")[n % 2]))
                    for n in range(ORDERS)]
            return await asyncio.wait_for(asyncio.gather(*(
                click(itertools.cycle(self.ports[::1 if i % 2 else -1]),
                      path, body, f"{name}-{n}")
                for n, path, body in keys for i in range(CLICKS))),
                WAIT_SECONDS_MAX)

        answers = asyncio.run(everything())
        self.assertEqual({a.status for a in answers}, {201})
        for n in range(ORDERS):
            same = answers[n * CLICKS:(n + 1) * CLICKS]
            self.assertEqual(len({(a.body, a.headers["location"])
                                  for a in same}), 1, same)
            self.assertEqual(json.loads(same[0].body)["order_id"],
                             f"order-{n:04d}")
        self.assertEqual(self.provider.wrong, [])
        self.assertEqual(sorted(self.provider.orders), [
            f"order-{n:04d}" for n in range(ORDERS)])
        self.assertEqual(self.rows("order_id, amount"), [
            (f"order-{n:04d}", 1000 + n) for n in range(ORDERS)])
        return answers

    def test_5_a_thousand_clicks(self):
        """An order would be asked for twice, where nothing goes wrong."""
        self.start_daemons()
        answers = self.storm("calm", "v3")
        self.assertEqual(set(self.provider.calls.values()), {1})
        self.assertEqual(self.rows("attempt"), [(1,)] * ORDERS)
        # Of each key, one answer is the API's and nine are that one again.
        self.assertEqual(sum("idempotency-replayed" not in a.headers
                             for a in answers), ORDERS)

    def test_6_a_gateway_that_was_paused(self):
        """It would act, or answer, for a key that is another's now."""
        held, go = threading.Event(), threading.Event()

        def hold(number, count):
            if count:       # for attempt 1
                held.set()
                go.wait(WAIT_SECONDS_MAX)
            return True

        self.provider.before_answer = hold
        body, first = self.body(1, "alipay"), []

        def at(port):
            return asyncio.run(click(itertools.repeat(port), "/v2/charges",
                                     body, "paused"))

        thread = threading.Thread(
            target=lambda: first.append(at(self.ports[0])))
        thread.start()
        self.assertTrue(held.wait(WAIT_SECONDS_MAX))
        self.daemons[0].child.send_signal(signal.SIGSTOP)
        try:
            second = at(self.ports[1])      # when the lease has ended
            go.set()
        finally:
            self.daemons[0].child.send_signal(signal.SIGCONT)
        thread.join(WAIT_SECONDS_MAX)
        self.assertEqual((second.status, first[0].status), (201, 201))
        self.assertEqual(first[0].body, second.body)
        self.assertNotIn("idempotency-replayed", second.headers)
        self.assertIn("idempotency-replayed", first[0].headers)
        self.assertEqual(self.provider.calls, {"order-0001": 2})
        self.assertEqual(self.rows("attempt"), [(2,)])

    def test_7_a_thousand_clicks_and_kills(self):
        """Something dies between the order and its answer, and the order is
        made again, or never answered."""
        acts = {12: self.daemons[0].kill_and_start,
                30: self.api.kill_and_start,
                48: self.provider.cut,
                62: self.daemons[1].kill_and_start,
                80: self.api.kill_and_start}

        def before_answer(number, count):
            """In the thread of the very order: it is made, not answered."""
            act = acts.pop(count, None)
            if act:
                act()
            return count % 10 != 5

        self.provider.before_answer = before_answer
        self.storm("kills", "v1", "v2")
        self.assertEqual(acts, {})
        # Those whose answers were lost, at least, were asked for again.
        self.assertGreaterEqual(
            sum(n > 1 for n in self.provider.calls.values()), ORDERS // 10)
        self.assertGreater(max(self.rows("attempt"))[0], 1)
        for daemon in self.daemons:
            self.assertEqual(daemon.stop(), 0)


if __name__ == "__main__":
    unittest.main()
