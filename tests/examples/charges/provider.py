"""Plays Alipay and WeChat Pay for the test: their protocols, real signatures,
and what they are to a shop: one order an out_trade_no.

A request counts if the shop signed it. A repeated one gets the same order, with
another amount a refusal; its code may be another one each time, so that nobody
relies on equal codes. What is wrong with a request is put down in `wrong`.
"""
import base64
import collections
import datetime
import http.server
import json
import re
import secrets
import socket
import subprocess
import threading
import time
import urllib.parse

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    load_pem_private_key, load_pem_public_key)

CLOCK_SECONDS_MAX = 300
SHOP = {"ALIPAY_APP_ID": "2021000000000009",
        "ALIPAY_NOTIFY_URL": "https://pay.example.com/notify/alipay/shop1",
        "WECHAT_APPID": "wx0000000000000009", "WECHAT_MCHID": "1900000009",
        "WECHAT_SERIAL": "5157F09EFDC096DE15EBE81A47057A7200000009",
        "WECHAT_PUBLIC_KEY_ID": "PUB_KEY_ID_0000000000000000000009",
        "WECHAT_NOTIFY_URL": "https://pay.example.com/notify/wechat/shop1"}


def make_keys(folder):
    """A pair each for the shop and the provider, at both."""
    for name in ("alipay_shop", "alipay", "wechat_shop", "wechat"):
        file = f"{folder}/{name}"
        subprocess.run(
            f"umask 077; openssl genpkey -algorithm RSA -out {file}.key"
            " -pkeyopt rsa_keygen_bits:2048"
            f" && openssl pkey -in {file}.key -pubout -out {file}.pub",
            shell=True, check=True, stderr=subprocess.DEVNULL)


class Refusal(Exception):
    """status, code"""


class Provider(http.server.ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True

    def __init__(self, folder):
        super().__init__(("127.0.0.1", 0), Handler)
        self.keys = {}
        for name in ("alipay", "wechat"):
            with open(f"{folder}/{name}.key", "rb") as f:
                own = load_pem_private_key(f.read(), None)
            with open(f"{folder}/{name}_shop.pub", "rb") as f:
                self.keys[name] = own, load_pem_public_key(f.read())
        self.folder = folder
        self.lock = threading.Lock()
        self.orders = {}        # out_trade_no: provider, fen, subject
        self.calls = collections.Counter()      # by out_trade_no
        self.wrong = []
        self.lines = set()
        # Called when an order has been asked for, before it is answered, with
        # its number and how many orders there are now. False: no answer.
        self.before_answer = lambda out_trade_no, count: True
        self.spoil = lambda text: text  # what is sent, once it is signed
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def settings(self):
        """For the shop."""
        url = f"http://127.0.0.1:{self.server_port}"
        files = {"ALIPAY_APP_KEY": "alipay_shop.key",
                 "ALIPAY_PUBLIC_KEY": "alipay.pub",
                 "WECHAT_KEY": "wechat_shop.key",
                 "WECHAT_PUBLIC_KEY": "wechat.pub"}
        return {**SHOP, "ALIPAY_URL": f"{url}/gateway.do", "WECHAT_URL": url,
                **{n: f"{self.folder}/{f}" for n, f in files.items()}}

    def sign(self, name, text):
        return base64.b64encode(self.keys[name][0].sign(
            text.encode(), PKCS1v15(), SHA256())).decode()

    def check(self, name, text, signature):
        try:
            self.keys[name][1].verify(
                base64.b64decode(signature, validate=True), text.encode(),
                PKCS1v15(), SHA256())
        except (InvalidSignature, ValueError) as e:
            raise Refusal(401, "SIGN_ERROR") from e

    def order(self, out_trade_no, order):
        """How many orders there are now, and the number of this call."""
        with self.lock:
            self.calls[out_trade_no] += 1
            known = self.orders.setdefault(out_trade_no, order)
            if known != order:
                raise Refusal(400, "INVALID_REQUEST")
            first = self.calls[out_trade_no] == 1
            return len(self.orders) if first else 0, self.calls[out_trade_no]

    def cut(self):
        """Every line at once, whatever was on it."""
        with self.lock:
            lines, self.lines = self.lines, set()
        for line in lines:
            try:
                line.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def handle_error(self, request, client_address):
        pass    # a line was cut

    def close(self):
        self.shutdown()
        self.cut()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self):
        super().setup()
        with self.server.lock:
            self.server.lines.add(self.connection)

    def finish(self):
        with self.server.lock:
            self.server.lines.discard(self.connection)
        super().finish()

    def log_message(self, *args):
        pass

    def do_POST(self):
        size = int(self.headers["Content-Length"])
        body = self.rfile.read(size)
        if len(body) < size:    # the line was cut
            self.close_connection = True
            return
        body, path = body.decode(), self.path.partition("?")[0]
        try:
            if path == "/gateway.do":
                self.alipay(body)
            elif self.path == "/v3/pay/transactions/native":
                self.wechat(body)
            else:
                raise ValueError(self.path)
        except (ValueError, KeyError, TypeError, AssertionError) as e:
            self.server.wrong.append(f"{path}: {e!r}")
            self.reply(400, "{}")

    def reply(self, status, text, **headers):
        data = self.server.spoil(text).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Type", "application/json;charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def order(self, out_trade_no, order):
        """The number of this call, or None: it gets no answer."""
        count, call = self.server.order(out_trade_no, order)
        if self.server.before_answer(out_trade_no, count):
            return call
        self.close_connection = True
        return None

    def alipay(self, body):
        pairs = urllib.parse.parse_qsl(
            self.path.partition("?")[2] + "&" + body, True, True)
        p = dict(pairs)
        assert len(p) == len(pairs), "a parameter is there twice"
        sign = p.pop("sign")
        try:
            self.server.check("alipay", "&".join(
                f"{n}={v}" for n, v in sorted(p.items()) if v), sign)
            now = datetime.datetime.utcnow() + datetime.timedelta(hours=8)
            sent = datetime.datetime.strptime(p["timestamp"],
                                              "%Y-%m-%d %H:%M:%S")
            assert abs(now - sent).total_seconds() < CLOCK_SECONDS_MAX
            assert (p["app_id"], p["method"], p["sign_type"], p["version"],
                    p["charset"]) == (SHOP["ALIPAY_APP_ID"],
                                      "alipay.trade.precreate", "RSA2", "1.0",
                                      "utf-8"), p
            assert p["notify_url"] == SHOP["ALIPAY_NOTIFY_URL"]
            content = json.loads(p["biz_content"])
            assert re.fullmatch(r"\d+\.\d\d", content["total_amount"])
            number = content["out_trade_no"]
            call = self.order(number, (
                "alipay", int(content["total_amount"].replace(".", "")),
                content["subject"]))
            got = {"code": "10000", "msg": "Success", "out_trade_no": number,
                   "qr_code": f"https://qr.alipay.com/{number}x{call}"}
        except Refusal as e:
            call = True
            got = {"code": "40004", "msg": "Business Failed",
                   "sub_code": "ACQ.CONTEXT_INCONSISTENT"}
            if e.args[0] == 401:
                self.server.wrong.append("Alipay: wrong signature")
                got = {"code": "40002", "msg": "Invalid Arguments",
                       "sub_code": "isv.invalid-signature"}
        if call is None:
            return
        # As Alipay writes it: what is signed is this text, not its meaning.
        text = json.dumps(got, separators=(",", ":")).replace("/", r"\/")
        self.reply(200, f'{{"alipay_trade_precreate_response":{text},'
                        f'"sign":"{self.server.sign("alipay", text)}"}}')

    def wechat(self, body):
        scheme, _, rest = self.headers["Authorization"].partition(" ")
        a = dict(re.findall(r'(\w+)="([^"]*)"', rest))
        assert scheme == "WECHATPAY2-SHA256-RSA2048", scheme
        assert self.headers["User-Agent"] and self.headers["Accept"]
        try:
            self.server.check(
                "wechat", f"POST\n{self.path}\n{a['timestamp']}\n"
                f"{a['nonce_str']}\n{body}\n", a["signature"])
            assert abs(time.time() - int(a["timestamp"])) < CLOCK_SECONDS_MAX
            p = json.loads(body)
            assert (a["mchid"], p["mchid"], a["serial_no"], p["appid"]) == (
                SHOP["WECHAT_MCHID"], SHOP["WECHAT_MCHID"],
                SHOP["WECHAT_SERIAL"], SHOP["WECHAT_APPID"])
            assert p["notify_url"] == SHOP["WECHAT_NOTIFY_URL"]
            assert p["amount"]["currency"] == "CNY"
            number = p["out_trade_no"]
            call = self.order(number, ("wechat", p["amount"]["total"],
                                       p["description"]))
            status, got = 200, {
                "code_url": f"weixin://wxpay/bizpayurl?pr={number}x{call}"}
        except Refusal as e:
            call = True
            status, code = e.args
            got = {"code": code, "message": "see the code"}
            if status == 401:
                self.server.wrong.append("WeChat: wrong signature")
        if call is None:
            return
        text = json.dumps(got)
        now, nonce = str(int(time.time())), secrets.token_hex(16)
        self.reply(status, text, Wechatpay_Timestamp=now,
                   Wechatpay_Nonce=nonce,
                   Wechatpay_Serial=SHOP["WECHAT_PUBLIC_KEY_ID"],
                   Wechatpay_Signature=self.server.sign(
                       "wechat", f"{now}\n{nonce}\n{text}\n"))
