"""Clients that only hold connections: crowd.py PORT IDLE BODY HEAD

IDLE have asked once and keep the connection; BODY send a byte of a body a second,
HEAD a byte of a header. All are open when "ready" is printed. At the end of
standard input it prints how many of them the server has closed by then.

A process of its own, so that what it costs does not slow who measures.
"""
import resource
import select
import socket
import sys
import time

STEPS = 50  # of a second: in each the next part of the slow ones sends
PATH = b"/notify/alipay/shop1"
ASK = b"GET /nowhere HTTP/1.1\r\nHost: crowd\r\n\r\n"
BODY = b"POST " + PATH + b" HTTP/1.1\r\nHost: crowd\r\nContent-Length: 60000\r\n\r\n"
HEAD = b"POST " + PATH + b" HTTP/1.1\r\nHost: crowd\r\nX-Slow: "


def connect(port, count, first):
    held = []
    for _ in range(count):
        s = socket.create_connection(("127.0.0.1", port))
        s.sendall(first)
        held.append(s)
    return held


def is_closed(s):
    try:
        return s.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def dribble(slow):
    """A byte a second of each, until standard input ends."""
    step, due = 0, time.monotonic()
    while not select.select([sys.stdin], [], [], max(0, due - time.monotonic()))[0]:
        for s in slow[step % STEPS::STEPS]:
            try:
                s.send(b"x", socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
            except OSError:
                pass  # closed: it is counted at the end
        step, due = step + 1, max(due + 1 / STEPS, time.monotonic())


def main():
    port, idle, body, head = map(int, sys.argv[1:])
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    held = connect(port, idle, ASK)
    for s in held:
        assert s.recv(4096).startswith(b"HTTP/1.1 404 "), "not answered"
    slow = connect(port, body, BODY) + connect(port, head, HEAD)
    print("ready", flush=True)
    dribble(slow)
    print(sum(map(is_closed, held + slow)), flush=True)


main()
