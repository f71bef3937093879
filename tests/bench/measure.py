"""What the bench measures with: processes, CPU time, the load generator,
pgbench, prepared requests. Numbers only; bench.py judges them.
"""
import glob
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TICK = os.sysconf("SC_CLK_TCK")
START_SECONDS_MAX = 30


def psql(text, database=None):
    args = ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", text]
    env = dict(os.environ, **({"PGDATABASE": database} if database else {}))
    out = subprocess.run(args, env=env, check=True, capture_output=True, text=True)
    return out.stdout.strip()


def cpu_seconds(pid):
    """Of a process and its children, those that ended included."""
    children, total = {}, 0.0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="latin-1") as f:
                    fields = f.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(
                (int(name), sum(int(x) for x in fields[11:15]) / TICK))
            if int(name) == pid:
                total += sum(int(x) for x in fields[11:15]) / TICK
    todo = [pid]
    while todo:
        for child, seconds in children.get(todo.pop(), []):
            todo.append(child)
            total += seconds
    return total


def rss_mb(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return int(re.search(r"VmRSS:\s+(\d+) kB", f.read()).group(1)) / 1024


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A server under test in a process group of its own."""

    def __init__(self, args, port, folder, env=None):
        self.port, self.args = port, args
        self.log_path = os.path.join(folder, "server.log")
        self.began = time.monotonic()
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                args, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, env=dict(os.environ, **(env or {})))
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise

    def _wait(self):
        while time.monotonic() < self.began + START_SECONDS_MAX:
            if self.process.poll() is not None:
                break
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                time.sleep(0.001)
        raise RuntimeError(f"{self.args[0]} does not listen: {self.log()}")

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()[-2000:]

    def stop(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Requests:
    """Files of prepared requests, made anew before their timestamps grow old
    (the daemon takes five minutes)."""

    FRESH_SECONDS = 200

    def __init__(self, folder):
        self.folder = folder
        self.made = {}

    def get(self, name, count, *more):
        folder = os.path.join(self.folder, name)
        made, had = self.made.get(name, (0, 0))
        if had < count or time.time() > made + self.FRESH_SECONDS:
            os.makedirs(folder, exist_ok=True)
            keys = os.path.join(folder, "keys")
            if not os.path.lexists(keys):
                os.symlink(os.path.join(self.folder, "keys"), keys)
            stamp = int(time.time())
            subprocess.run(["node", os.path.join(HERE, "gen.mjs"), "--out", folder,
                            "--n", str(count), "--timestamp", str(stamp), *more],
                           check=True, stdout=subprocess.DEVNULL)
            self.made[name] = (stamp, count)
        return os.path.join(folder, "requests.bin")


def load(program, path, port, **options):
    """Runs the load generator; its line, with exit status 2 as a fault."""
    args = [program, "--file", path, "--port", str(port)]
    for key, value in options.items():
        args += [f"--{key}", str(value)]
    out = subprocess.run(args, capture_output=True, text=True, check=False)
    if out.returncode:
        raise RuntimeError(f"load: {out.stderr.strip()} {out.stdout.strip()}")
    return json.loads(out.stdout)


def pgbench(script, connections, seconds):
    out = subprocess.run(
        ["pgbench", "-n", "-M", "prepared", "-c", str(connections), "-j", "1",
         "-T", str(seconds), "-f", script],
        check=True, capture_output=True, text=True).stdout
    return float(re.search(r"(?m)^tps = ([\d.]+)", out).group(1))


def insert_ms(folder, connections, seconds, rate=0, commits=1):
    """p50 and p99 of the least that so many commits, one behind the other, cost
    here: each of a row of one number, on a table of its own, from pgbench. What
    is behind its time at a rate counts as well."""
    script, prefix = os.path.join(folder, "insert.sql"), os.path.join(folder, "tx")
    with open(script, "w", encoding="ascii") as f:
        f.write("INSERT INTO least VALUES (1);\n" * commits)
    psql("CREATE TABLE least (n integer)")
    subprocess.run(
        ["pgbench", "-n", "-M", "prepared", "-c", str(connections), "-j", "1",
         "-T", str(seconds), "-f", script, "-l", f"--log-prefix={prefix}",
         *(["-R", str(rate)] if rate else [])], check=True, capture_output=True)
    took = []
    for name in glob.glob(f"{prefix}.*"):
        with open(name, encoding="ascii") as f:
            took += [int(line.split()[2]) / 1000 for line in f]
        os.remove(name)
    took.sort()
    return took[len(took) // 2], took[len(took) * 99 // 100]


def first_request(path, kind=b"A"):
    """The bytes of the first request of a kind."""
    with open(path, "rb") as f:
        for line in f:
            _, size, got, _ = line.split()
            data = f.read(int(size))
            if got == kind:
                return data
    raise RuntimeError(f"no request of kind {kind}")


def exchange(s, request):
    s.sendall(request)
    reply = b""
    while b"\r\n\r\n" not in reply or not reply.split(b"\r\n\r\n", 1)[1]:
        got = s.recv(4096)
        if not got:
            raise RuntimeError(f"closed after {reply!r}")
        reply += got
    return reply


def idle_connections(port, request, count):
    """Open keep-alive connections that have had one answer each."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    held = []
    for _ in range(count):
        s = socket.create_connection(("127.0.0.1", port))
        if b" 200 " not in exchange(s, request)[:16]:
            raise RuntimeError("an idle connection was not answered")
        held.append(s)
    return held


class Crowd:
    """4000 idle and 1000 slow clients, as of tests/lib/crowd.py."""

    def __init__(self, port):
        self.process = subprocess.Popen(
            [sys.executable, "-B", os.path.join(HERE, "../lib/crowd.py"), str(port),
             "4000", "500", "500"],
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError("no crowd")

    def leave(self):
        """How many the server has closed."""
        return int(self.process.communicate()[0])
