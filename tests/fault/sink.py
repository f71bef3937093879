"""An application that events are pushed to, and that misbehaves when told to.

Writes down of each request when it began and ended, and whether it was answered
with success. A request has ended when it is answered or either side has closed
its connection: from then on nobody waits for it. Runs in the event loop of
whoever starts it; times are numbers that count up, so that any two things have
an order.
"""
import asyncio
import itertools
import json
import random
import socket

TIMEOUT_SECONDS = 1.0       # of the endpoint, in the daemon's configuration
MODES = ("down", "slow", "garbage", "early", "refuse")
ODD_OF_THE_GOOD = 0.03      # misbehave all the same

# After each of these the client gives the connection up.
GARBAGE = [
    b"\x00\xff\x16\x03\x01 what?\r\n\r\n",
    b"SSH-2.0-OpenSSH_9.2\r\n",
    b"<html>it works</html>",
    b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\ntoo short",
    b"HTTP/1.1 200 OK\r\nContent-Length: none\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnot a length\r\n",
    b"HTTP/1.1 200 OK\r\nX: " + b"x" * 300_000 + b"\r\n\r\n",
    b"HTTP/1.1 2",
]


class Exchange:
    """One request."""

    def __init__(self, event, began):
        self.event, self.began = event, began
        self.id, self.seq = event["id"], event["seq"]
        self.order = (event["tenant"], event["account"], event["out_trade_no"])
        self.ended = None
        self.success = False


class Connection(asyncio.Protocol):
    """One client; one request at a time."""

    def __init__(self, sink):
        self.sink = sink
        self.data = b""
        self.exchange = None

    def connection_made(self, transport):
        self.transport = transport
        self.sink.connections.add(self)

    def connection_lost(self, _):
        self.sink.connections.discard(self)
        self.finish(False)

    def eof_received(self):
        self.finish(False)

    def data_received(self, data):
        self.data += data
        head, found, body = self.data.partition(b"\r\n\r\n")
        if not found or self.exchange:
            return
        headers = dict(line.lower().split(b": ", 1)
                       for line in head.split(b"\r\n")[1:])
        size = int(headers[b"content-length"])
        if len(body) < size:
            return
        self.data = body[size:]
        event = json.loads(body[:size])
        if event["id"].encode() != headers[b"webhook-id"]:
            self.sink.problems.append(f"{event['id']} came with another id")
        self.exchange = self.sink.begin(event, self)
        self.sink.act(self)

    def is_gone(self):
        """Whether the client has closed it, heard of or not."""
        if self.transport.is_closing():
            return True
        fd = self.transport.get_extra_info("socket").fileno()
        with socket.fromfd(fd, socket.AF_INET, socket.SOCK_STREAM) as s:
            try:
                return s.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
            except BlockingIOError:
                return False
            except OSError:
                return True

    def finish(self, success):
        if self.exchange:
            self.sink.end(self.exchange, success)
        self.exchange = None

    def answer(self, data, success=False, close=False):
        """Whole and at once, unless the client has gone."""
        if not self.exchange or self.is_gone():
            self.finish(False)
            return
        if success or close:
            self.finish(success)
        self.transport.write(data)
        if close:
            self.transport.close()

    def succeed(self):
        body = b"ok" if random.random() < 0.95 else b"x" * 100_000
        self.answer(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"
                    % (len(body), body), success=True)

    def fail(self):
        status = random.choice([500, 503, 404, 302, 429, 999])
        self.answer(b"HTTP/1.1 %d no\r\nContent-Length: 2\r\nLocation: /\r\n\r\nno"
                    % status)
        self.finish(False)

    def cut(self):
        """Closes without an answer, or in the middle of one."""
        if random.random() < 0.5:
            self.answer(random.choice(GARBAGE[-5:]), close=True)
        self.finish(False)
        self.transport.abort()


class Sink:
    """The endpoint. mode: "good", or how it misbehaves."""

    def __init__(self):
        self.mode = "good"
        self.exchanges = []
        self.successes = 0
        self.problems = []
        self.connections = set()
        self.in_flight = {}     # id of the event -> its connection
        self.numbers = itertools.count(1)
        self.port = 0
        self.server = None

    async def up(self):
        self.server = await asyncio.get_running_loop().create_server(
            lambda: Connection(self), "127.0.0.1", self.port, backlog=1024)
        self.port = self.server.sockets[0].getsockname()[1]

    async def down(self):
        self.server.close()
        for c in list(self.connections):
            c.transport.abort()
        await self.server.wait_closed()

    def begin(self, event, connection):
        exchange = Exchange(event, next(self.numbers))
        other = self.in_flight.get(exchange.id)
        if other and other.exchange and not other.is_gone():
            self.problems.append(f"{exchange.id} is in flight twice")
        self.in_flight[exchange.id] = connection
        self.exchanges.append(exchange)
        return exchange

    def end(self, exchange, success):
        exchange.ended = next(self.numbers)
        exchange.success = success
        self.successes += success
        held = self.in_flight.get(exchange.id)
        if held and held.exchange is exchange:
            del self.in_flight[exchange.id]

    def act(self, connection):
        mode = self.mode
        if mode == "good" and random.random() < ODD_OF_THE_GOOD:
            mode = random.choice(MODES[1:])
        later = asyncio.get_running_loop().call_later
        if mode == "slow":
            later(random.uniform(0.5, 2) * TIMEOUT_SECONDS, connection.succeed)
        elif mode == "garbage":
            later(0, connection.answer, random.choice(GARBAGE), False,
                  random.random() < 0.5)
        elif mode == "early":
            later(random.uniform(0, 0.05), connection.cut)
        elif mode == "refuse":
            later(random.uniform(0, 0.05), connection.fail)
        else:
            later(random.uniform(0, 0.05), connection.succeed)
