"""The sample configurations of nginx and Caddy, as they are shipped but for ports,
paths and what they say to uncomment, run by the programs themselves in a folder of
their own.
"""
import os
import socket
import ssl
import subprocess
import tempfile

from harness import Client, eventually

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
PAY, API = "pay.example.com", "api.example.com"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Proxy:
    """ports: of two daemons and of a gateway."""
    sample = None

    def __init__(self, ports, guard_port):
        self.folder = tempfile.mkdtemp(prefix="pnx.", dir="/tmp")
        self.port, self.ports, self.guard_port = free_port(), ports, guard_port
        self.certificate = self.path("cert.pem")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
             "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={PAY}",
             "-addext", f"subjectAltName=DNS:{PAY},DNS:{API}",
             "-keyout", self.path("key.pem"), "-out", self.certificate],
            check=True, capture_output=True)
        self.context = ssl.create_default_context(cafile=self.certificate)
        with open(os.path.join(ROOT, self.sample), encoding="utf-8") as f:
            text = f.read()
        for old, new in self.changes():
            assert old in text, f"{self.sample} has no {old}"
            text = text.replace(old, new)
        self.write(os.path.basename(self.sample), text)
        self.environment = {**os.environ, "HOME": self.folder,
                            "XDG_DATA_HOME": self.folder,
                            "XDG_CONFIG_HOME": self.folder}
        self.check()
        self.log = open(self.path("log"), "wb")
        self.process = subprocess.Popen(self.command(), env=self.environment,
                                        stdout=self.log, stderr=self.log)
        eventually(self.listens, f"{self.sample} is served")

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)

    def run(self, *command):
        done = subprocess.run(command, env=self.environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout

    def listens(self):
        assert self.process.poll() is None, self.read_log()
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def read_log(self):
        with open(self.path("log"), errors="replace") as f:
            return f.read()

    def connect(self, source, name=PAY):
        return TlsClient(self, source, name)

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()
        subprocess.run(["rm", "-rf", self.folder], check=True)


class TlsClient(Client):
    def __init__(self, proxy, source, name):
        super().__init__(proxy.port, source=source)
        self.file.close()
        self.socket = proxy.context.wrap_socket(self.socket, server_hostname=name)
        self.file = self.socket.makefile("rb")


class Nginx(Proxy):
    sample = "systemd/nginx/paynotifyd.conf"

    def changes(self):
        yield "listen 443 ssl", f"listen 127.0.0.1:{self.port} ssl"
        for name in (PAY, API):
            yield f"/etc/ssl/{name}/fullchain.pem", self.certificate
            yield f"/etc/ssl/{name}/key.pem", self.path("key.pem")
        yield "127.0.0.1:8600", f"127.0.0.1:{self.ports[0]}"
        yield "#server 10.0.0.2:8600", f"server 127.0.0.1:{self.ports[1]}"
        yield "127.0.0.1:8602", f"127.0.0.1:{self.guard_port}"

    def check(self):
        temporary = "".join(f"{kind}_temp_path {self.path(kind)};\n" for kind in
                            ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        self.write("nginx.conf", f"""
daemon off;
master_process off;
pid {self.path("pid")};
error_log stderr warn;
events {{ worker_connections 512; }}
http {{
access_log off;
{temporary}
include {self.path("paynotifyd.conf")};
}}
""")
        self.run(*self.command(), "-t")

    def command(self):
        return [os.environ["PN_NGINX"], "-p", self.folder, "-e", "stderr",
                "-c", self.path("nginx.conf")]


class Caddy(Proxy):
    sample = "systemd/caddy/Caddyfile"

    def changes(self):
        # What a test has besides: no port 2019 and no port 80.
        yield "\n{\n", "\n{\nadmin off\nauto_https disable_redirects\n"
        for name in (PAY, API):
            yield f"\n{name} {{", f"\n{name}:{self.port} {{"
            yield (f"#tls /etc/ssl/{name}/fullchain.pem /etc/ssl/{name}/key.pem",
                   f"tls {self.certificate} {self.path('key.pem')}")
        yield ("reverse_proxy 127.0.0.1:8600",
               "reverse_proxy " + " ".join(f"127.0.0.1:{p}" for p in self.ports))
        yield "reverse_proxy 127.0.0.1:8602", f"reverse_proxy 127.0.0.1:{self.guard_port}"

    def check(self):
        self.run(os.environ["PN_CADDY"], "validate", *self.options())

    def options(self):
        return ["--adapter", "caddyfile", "--config", self.path("Caddyfile")]

    def command(self):
        return [os.environ["PN_CADDY"], "run", *self.options()]
