"""Sockets that systemd passes: they win over [server] listen, and a restart under
load fails no request, because what connects meanwhile waits in their backlog.
systemd is played by this process, which binds them and starts the daemon.
"""
import fcntl
import os
import socket
import subprocess
import threading
import unittest
import unittest.mock

import harness
from harness import Case, Client, Daemon, eventually, events_of, raw

PATH = "/notify/alipay/shop1"


class Activated(Daemon):
    """A daemon that is started with these sockets: (name, socket) pairs."""

    def __init__(self, signer_folder, sockets):
        self.sockets = sockets
        super().__init__(signer_folder)

    def launch(self, log):
        fds = [fcntl.fcntl(s.fileno(), fcntl.F_DUPFD, 100) for _, s in self.sockets]
        as_3_4 = " ".join(f"{3 + i}<&{fd}" for i, fd in enumerate(fds))
        environment = dict(os.environ, LISTEN_FDS=str(len(fds)))
        names = [name for name, _ in self.sockets]
        if all(names):
            environment["LISTEN_FDNAMES"] = ":".join(names)
        process = subprocess.Popen(
            ["bash", "-c", f'LISTEN_PID=$$ exec "$@" {as_3_4}', "systemd",
             f"{harness.BUILD}/paynotifyd", "-c", self.conf],
            pass_fds=fds, stderr=log, env=environment)
        for fd in fds:
            os.close(fd)
        return process

    def restart(self):
        assert self.stop() == 0, self.log()
        with open(self.log_path, "ab") as log:
            self.process = self.launch(log)


def listening(family=socket.AF_INET, address=("127.0.0.1", 0)):
    s = socket.socket(family)
    s.bind(address)
    s.listen(1024)
    return s


class TestSockets(Case):
    @classmethod
    def activate(cls, *sockets):
        cls.daemons.append(Activated(cls.folder, sockets))
        return cls.daemons[-1]

    def test_sockets__win_over_the_configuration(self):
        with listening() as notify:
            d = self.activate(("notify", notify))
            port = notify.getsockname()[1]
            self.assertEqual(d.port, port)
            self.assertFalse(os.path.exists(f"{d.folder}/http.sock"))
            headers, body = self.signer.alipay("SOCKET1")
            self.expect(d.ready().ask(PATH, headers, body), 200, b"success")
            # The admin port had no socket: its address counts.
            self.assertEqual(d.admin("/healthz").status, 200)

    def test_sockets__go_by_their_names(self):
        """Health must not be served to the world, nor payments to its port."""
        with listening() as notify, listening() as admin:
            d = self.activate(("admin", admin), ("notify", notify))
            self.assertEqual(d.port, notify.getsockname()[1])
            self.assertFalse(os.path.exists(f"{d.folder}/admin.sock"))
            with Client(admin.getsockname()) as c:
                self.expect(c.ask(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"), 200)
            d.stop()
            # Nobody answers now, but both are still there to be connected to.
            for s in notify, admin:
                Client(s.getsockname()).close()

    def test_sockets__without_a_name_are_the_notifications(self):
        with listening() as notify:
            d = self.activate(("", notify))
            self.assertEqual(d.port, notify.getsockname()[1])

    def test_sockets__a_unix_socket_outlives_the_daemon(self):
        path = os.path.join(self.folder, "s")
        with listening(socket.AF_UNIX, path) as s, listening() as notify:
            d = self.activate(("notify", notify), ("notify", s))
            with Client(path) as c:
                self.expect(c.ask(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"), 404)
            self.assertIn(f"unix:{path}", d.log())
            d.stop()
            Client(path).close()

    def test_sockets__what_cannot_be_served_is_refused(self):
        def refused(name, s, why):
            with s, self.assertRaisesRegex(AssertionError, why):
                Activated(self.folder, [(name, s)])

        refused("admin", listening(address=("0.0.0.0", 0)), "only loopback")
        # Without a token whoever can connect may act.
        path = os.path.join(self.folder, "everybodys")
        everybodys = listening(socket.AF_UNIX, path)
        os.chmod(path, 0o666)
        refused("admin", everybodys, "SocketMode=0660")
        refused("admin", listening(socket.AF_UNIX, "\0pn-test-%d" % os.getpid()),
                "SocketMode=0660")
        idle = socket.socket()
        idle.bind(("127.0.0.1", 0))
        refused("notify", idle, "no listening stream socket")

    def test_sockets__others_variables_are_not_believed(self):
        """A process that was started by a service inherits its variables, and
        descriptor 3 is its own."""
        environment = dict(os.environ, LISTEN_FDS="1", LISTEN_PID="1")
        with open(os.path.join(self.folder, "log"), "wb+") as log:
            process = subprocess.Popen(
                [f"{harness.BUILD}/paynotifyd", "-c", self.daemon.conf],
                stderr=log, env=environment)
            self.assertEqual(process.wait(harness.DEADLINE), 1)
            log.seek(0)
            self.assertIn(b"address already in use", log.read())

    def test_sockets__a_request_waits_for_the_next_process(self):
        with listening() as notify:
            d = self.activate(("notify", notify))
            d.stop()
            headers, body = self.signer.alipay("SOCKET2")
            with d.connect() as c:
                c.send(raw(PATH, headers, body))
                d.restart()
                self.expect(c.read(), 200, b"success")
            self.assertEqual(len(events_of("SOCKET2")), 1)

    def test_sockets__who_was_just_accepted_is_answered(self):
        """A connection that the old process has taken is reset with its first
        request on its way; the next process cannot know of it."""
        with listening() as notify:
            d = self.activate(("notify", notify)).ready()
            headers, body = self.signer.alipay("SOCKET3")
            with d.connect() as c:
                eventually(lambda: d.metric("paynotify_connections") == 1, "accepted")
                d.begin_to_stop()
                reply = self.expect(c.ask(raw(PATH, headers, body)), 200, b"success")
                self.assertEqual(reply.headers["Connection"].lower(), "close")

    def test_sockets__systemd_is_told_how_it_stands(self):
        """A unit of Type=notify never starts, or its watchdog kills what works."""
        path = os.path.join(self.folder, "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told, \
                listening() as notify:
            told.bind(path)
            told.settimeout(harness.DEADLINE)

            def hear(what):
                while what not in (text := told.recv(4096).decode().split("\n")):
                    pass
                return text

            environ = {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "3000000"}
            with unittest.mock.patch.dict(os.environ, environ):
                d = self.activate(("notify", notify))
            self.assertTrue(any(line.startswith("STATUS=") for line in hear("READY=1")))
            for _ in range(2):
                hear("WATCHDOG=1")
            d.terminate()
            hear("STOPPING=1")
            self.assertEqual(d.wait(), 0)
            self.assertNotIn("watchdog", d.log())


class Load(threading.Thread):
    """Sends one notification again and again until it is told to stop."""

    def __init__(self, port, request, keeps_alive):
        super().__init__()
        self.port, self.request, self.keeps_alive = port, request, keeps_alive
        self.stopped, self.sent, self.failures = False, 0, []
        self.client = None

    def once(self):
        reused = self.client is not None
        self.client = self.client or Client(self.port)
        try:
            reply = self.client.ask(self.request)
        except (BrokenPipeError, ConnectionResetError):
            reply = None
        if reply is None and reused:
            # Closed before it was asked: every client asks again.
            self.client.close()
            self.client = None
            return self.once()
        if (not self.keeps_alive or reply is None or
                reply.headers.get("Connection", "").lower() == "close"):
            self.client.close()
            self.client = None
        return reply

    def run(self):
        while not self.stopped:
            try:
                reply = self.once()
            except OSError as error:
                self.failures.append(repr(error))
                continue
            self.sent += 1
            if reply is None or reply.body != b"success":
                self.failures.append(repr(reply))
        if self.client:
            self.client.close()


class TestRestart(Case):
    def test_sockets__a_restart_under_load_fails_no_request(self):
        with listening() as notify:
            self.daemons.append(Activated(self.folder, [("notify", notify)]))
            d = self.daemons[-1].ready()
            loads = []
            for i in range(8):
                headers, body = self.signer.alipay(f"RESTART{i}")
                loads.append(Load(d.port, raw(PATH, headers, body), i % 2 == 0))
                loads[-1].start()
            try:
                for _ in range(5):
                    before = [load.sent for load in loads]
                    eventually(lambda: all(load.sent > n + 20 for load, n in
                                           zip(loads, before)), "requests are answered")
                    d.restart()
            finally:
                for load in loads:
                    load.stopped = True
                for load in loads:
                    load.join()
            for load in loads:
                self.assertEqual(load.failures, [])


if __name__ == "__main__":
    unittest.main()
