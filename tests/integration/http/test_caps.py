"""What a client may have the server hold: heads and bodies."""
import array
import fcntl
import socket
import termios

from harness import Case, eventually, events_of, raw

ALIPAY = "/notify/alipay/shop1"
HELD = 100    # connections at the same time, each in the middle of 1 MB
GROWN_MB = 50  # half of that: sanitizers take several times what is asked for


class Caps(Case):
    server = "idle_timeout = 10m\nrequest_timeout = 10m"

    def rss_mb(self):
        with open(f"/proc/{self.daemon.process.pid}/status", encoding="ascii") as f:
            return next(int(x.split()[1]) for x in f if x.startswith("VmRSS")) / 1024

    def held(self, head, body):
        """How much the server grows when so many are in the middle of a body."""
        before, clients = self.rss_mb(), []
        for _ in range(HELD):
            clients.append(self.daemon.connect())
            clients[-1].send(head + body)
        # What was sent last has been read: the answer to the next one is.
        self.expect(self.daemon.ask("/nowhere", {}, b""), 404)
        for c in clients:
            eventually(lambda fd=c.socket.fileno(): unread(fd) == 0, "all was taken")
        grown = self.rss_mb() - before
        for c in clients:
            c.close()
        eventually(lambda: self.daemon.metric("paynotify_connections") == 0, "gone")
        return grown

    def test_http__what_is_not_wanted_is_not_buffered(self):
        """Bodies over the limit, or to nowhere, fill the memory."""
        body = b"x" * (1 << 20)
        for what, head in (
                ("length", raw(ALIPAY, {"Content-Length": 2 << 20}, b"", length=False)),
                ("chunks", raw(ALIPAY, {"Transfer-Encoding": "chunked"}, b"",
                               length=False) + b"200000\r\n"),
                ("path", raw("/nowhere", {"Content-Length": 2 << 20}, b"",
                             length=False))):
            with self.subTest(what=what):
                grown = self.held(head, body)
                print(f"{HELD} x 1 MB, {what}: {grown:.1f} MB")
                self.assertLess(grown, GROWN_MB)

    def test_http__an_announced_length_costs_nothing_beyond_the_limit(self):
        """Memory is taken for what was only announced."""
        before, clients = self.rss_mb(), []
        for _ in range(HELD):
            clients.append(self.daemon.connect())
            clients[-1].send(raw(ALIPAY, {"Content-Length": 2 << 20}, b"x",
                                 length=False))
        self.expect(self.daemon.ask("/nowhere", {}, b""), 404)
        grown = self.rss_mb() - before
        for c in clients:
            c.close()
        self.assertLess(grown, GROWN_MB)

    def test_http__endless_heads_are_refused(self):
        """A request line, a header, many headers, or blank lines without end."""
        endless = (
            b"POST /" + b"x" * (64 << 10),
            b"POST " + ALIPAY.encode() + b" HTTP/1.1\r\nX: " + b"y" * (64 << 10),
            b"POST " + ALIPAY.encode() + b" HTTP/1.1\r\n" + b"X-A: 1\r\n" * (8 << 10),
            b"POST " + ALIPAY.encode() + b" HTTP/1.1\r\nX: 1\r\n" + b" y\r\n" * (16 << 10),
        )
        for data in endless:
            with self.subTest(data=data[:60]), self.daemon.connect() as c:
                self.assertTrue(self.is_refused(c, data))

    def is_refused(self, c, data):
        """Answered with a failure, or closed, before its end. (500 is what
        libmicrohttpd says of a line between chunks that does not fit.)"""
        try:
            c.send(data)
        except OSError:
            return True  # closed before it was sent
        reply = c.read()
        return reply is None or reply.status in (400, 413, 414, 431, 500)

    def test_http__endless_chunk_extensions_are_refused(self):
        """What is beside the body has no limit of its own."""
        head = raw(ALIPAY, {"Transfer-Encoding": "chunked"}, b"", length=False)
        with self.daemon.connect() as c:
            self.assertTrue(self.is_refused(
                c, head + b"5;" + b"x" * (1 << 20)))
        with self.daemon.connect() as c:  # many small ones, of 1 byte each
            self.assertTrue(self.is_refused(
                c, head + (b"1;" + b"e" * 100 + b"\r\nx\r\n") * (70 << 10) + b"0\r\n\r\n"))
        with self.daemon.connect() as c:  # trailers
            self.assertTrue(self.is_refused(
                c, head + b"0\r\n" + b"X-T: 1\r\n" * (16 << 10)))

    def test_http__a_thousand_in_one_pipeline(self):
        """Requests sent without waiting are lost, mixed up, or kept in memory."""
        genuine = [raw(ALIPAY, *self.signer.alipay(f"PI{i}")) for i in range(10)]
        wrong = raw(ALIPAY, {}, b"a=1")
        data = b"".join(genuine[i // 100] if i % 100 == 0 else wrong
                        for i in range(1000))
        with self.daemon.connect() as c:
            c.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
            c.send(data)
            for i in range(1000):
                self.expect(c.read(), *((400, b"fail") if i % 100 else (200, b"success")))
        for i in range(10):
            self.assertEqual(len(events_of(f"PI{i}")), 1)


def unread(fd):
    """Bytes that the other side has not taken yet."""
    left = array.array("i", [0])
    fcntl.ioctl(fd, termios.TIOCOUTQ, left)
    return left[0]


if __name__ == "__main__":
    import unittest
    unittest.main()
