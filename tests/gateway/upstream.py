"""An API behind the gateway: HTTP/1.1 over asyncio, on a thread of its own.

It does what a request's X-Do says (a JSON object, or a list of them, one an
attempt), and keeps of every request all header lines and bytes:

    status, headers, body, size     what is answered; size: so many bytes
    fill = [lines, size]            ... in front of the headers stand so many
                                    X-0, X-1 with values of that size
    chunked                         ... in chunks instead of a Content-Length,
                                    with a trailer
    hints                           a 103 with headers of its own comes before
    hold                            not before Seen.release() is called
    end = "silent"                  the connection is closed, nothing answered
          "half"                    in the middle of the body
          "garbage"                 something that is no HTTP is answered
          "close"                   answered, then the connection is closed

Without X-Do it answers 201 with a body and headers that no two answers share,
so that a replay cannot be taken for the work done again.
"""
import asyncio
import itertools
import json
import logging
import os
import threading

# Of writes to a connection that the gateway has closed.
logging.getLogger("asyncio").setLevel(logging.ERROR)
# For what must happen; then the test fails.
WAIT_SECONDS_MAX = float(os.environ.get("PN_WAIT", 60))


class Seen:
    """A request as it came, and how it will be answered."""

    def __init__(self, number, connection, line, headers, body, loop):
        self.number, self.connection = number, connection
        self.method, self.target, _ = line.split(" ")
        self.headers, self.body = headers, body
        self.loop = loop
        self.go = asyncio.Event()

    def all(self, name):
        return [v for n, v in self.headers if n.lower() == name.lower()]

    def get(self, name):
        values = self.all(name)
        assert len(values) <= 1, f"{name} came {len(values)} times"
        return values[0] if values else None

    @property
    def key(self):
        return self.get("Idempotency-Key")

    @property
    def attempt(self):
        return int(self.get("Idempotency-Attempt"))

    def plan(self):
        plans = json.loads(self.get("X-Do") or "{}")
        if isinstance(plans, dict):
            return plans
        at = max(int(self.get("Idempotency-Attempt") or 1), 1)
        return plans[min(at, len(plans)) - 1]

    def release(self):
        self.loop.call_soon_threadsafe(self.go.set)


class Upstream:
    def __init__(self, ssl=None):
        self.ssl = ssl
        self.requests = []
        self.connections = 0
        self.changed = threading.Condition()
        self.numbers = itertools.count(1)
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._main, daemon=True)
        self.thread.start()
        self.port = self._call(self._listen(host="127.0.0.1", port=0))

    def _main(self):
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def _call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(
            coroutine, self.loop).result(WAIT_SECONDS_MAX)

    async def _listen(self, **where):
        server = await asyncio.start_server(self._serve, ssl=self.ssl,
                                            backlog=4096, **where)
        return server.sockets[0].getsockname()[1]

    def listen_also(self, socket):
        """On a socket that is bound, but did not listen until now."""
        self._call(self._listen(sock=socket))

    def close(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(WAIT_SECONDS_MAX)

    # -- what tests ask ------------------------------------------------------

    def seen(self, key):
        """The requests under a key, in their order."""
        with self.changed:
            return [r for r in self.requests if r.key == key]

    def count(self):
        with self.changed:
            return len(self.requests)

    def wait(self, key, n=1):
        """The n-th request under a key, when it is there."""
        return self.wait_for(lambda: self.seen(key)[n - 1:n],
                             f"request {n} under {key}")[0]

    def wait_for(self, found, what):
        with self.changed:
            if not self.changed.wait_for(found, WAIT_SECONDS_MAX):
                raise AssertionError(f"the upstream never saw {what}")
            return found()

    # -- serving -------------------------------------------------------------

    async def _serve(self, reader, writer):
        with self.changed:
            self.connections += 1
            connection = self.connections
            self.changed.notify_all()
        try:
            while (seen := await self._read(reader, connection)) is not None:
                if not await self._answer(seen, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, ValueError):
            pass # the gateway is gone, or it was no HTTP
        finally:
            writer.close()

    async def _read(self, reader, connection):
        first = await reader.readexactly(1)
        if not first.isalpha():
            return None # TLS, maybe
        head = first + await reader.readuntil(b"\r\n\r\n")
        line, *lines = head[:-4].decode("latin-1").split("\r\n")
        headers = [tuple(h.split(": ", 1)) if ": " in h
                   else (h.rstrip(":"), "") for h in lines]
        lengths = [v for n, v in headers if n.lower() == "content-length"]
        size = int(lengths[0]) if lengths else 0
        body = await reader.readexactly(size)
        seen = Seen(next(self.numbers), connection, line, headers, body,
                    self.loop)
        with self.changed:
            self.requests.append(seen)
            self.changed.notify_all()
        return seen

    async def _answer(self, seen, writer):
        """False: the connection is closed now."""
        plan = seen.plan()
        if plan.get("hold"):
            await seen.go.wait()
        end = plan.get("end")
        if end == "silent":
            return False
        if end == "garbage":
            writer.write(b"\x16\x03\x01 what is this\r\n\r\n")
            await writer.drain()
            return False
        body, chunked = self._body(seen, plan), plan.get("chunked")
        status = plan.get("status", 201)
        bodyless = status in (204, 304) or seen.method == "HEAD"
        head = [f"HTTP/1.1 {status} Said"]
        lines, length = plan.get("fill", (0, 0))
        head += [f"X-{n}: " + "v" * length for n in range(lines)]
        head += [f"{n}: {v}" for n, v in plan.get("headers",
                                                  self._headers(seen))]
        if chunked:
            head.append("Transfer-Encoding: chunked")
        elif status != 204:
            head.append(f"Content-Length: {len(body)}")
        if end == "close":
            head.append("Connection: close")
        if plan.get("hints"):
            writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: </early>\r\n"
                         b"X-Early: 1\r\n\r\n")
        writer.write("\r\n".join(head).encode("latin-1") + b"\r\n\r\n")
        if end == "half":
            body = body[:len(body) // 2]
        if not bodyless:
            self._write(writer, body, chunked, whole=end != "half")
        await writer.drain()
        return end is None

    @staticmethod
    def _body(seen, plan):
        if "size" in plan:
            return b"x" * plan["size"]
        if "body" in plan:
            return plan["body"].encode("latin-1")
        return b'{"charge":%d,"attempt":%s}' % (
            seen.number, (seen.get("Idempotency-Attempt") or "0").encode())

    @staticmethod
    def _headers(seen):
        return [("Content-Type", "application/json"),
                ("Date", "Thu, 01 Jan 2026 00:00:00 GMT"),
                ("Set-Cookie", f"session={seen.number}"),
                ("X-Work", str(seen.number)),
                ("ETag", f'"{seen.number}"')]

    @staticmethod
    def _write(writer, body, chunked, whole):
        if not chunked:
            writer.write(body)
            return
        for at in range(0, len(body), 1000):
            piece = body[at:at + 1000]
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        if whole:
            writer.write(b"0\r\nX-Trailer: t\r\n\r\n")
