"""Orders at Alipay and at WeChat Pay: what is sent is signed with the shop's
key, and what comes back counts only if the provider's signature is right.

Both end in a code, in Refused or in Unknown. An answer whose signature is
wrong says nothing of what was done, and neither does one about the shop's own
mistakes (a wrong key, no permission): when they are mended, the order goes
through. So these are Unknown.
"""
import base64
import datetime
import json
import secrets
import time

import httpx
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    load_pem_private_key, load_pem_public_key)

CLOCK_SECONDS_MAX = 300     # of a signature's time and ours


class Refused(Exception):
    """The provider will not make that order."""


class Unknown(Exception):
    """It may have made the order or not."""


class Keys:
    """SHA-256 with RSA, as both use it."""

    def __init__(self, private, public):
        with open(private, "rb") as f:
            self.private = load_pem_private_key(f.read(), None)
        with open(public, "rb") as f:
            self.public = load_pem_public_key(f.read())

    def sign(self, text):
        return base64.b64encode(self.private.sign(
            text.encode(), PKCS1v15(), SHA256())).decode()

    def check(self, text, signature):
        try:
            self.public.verify(base64.b64decode(signature, validate=True),
                               text.encode(), PKCS1v15(), SHA256())
        except (InvalidSignature, ValueError) as e:
            raise Unknown("its signature is wrong") from e


async def post(http, url, **request):
    try:
        return await http.post(url, **request)
    except httpx.HTTPError as e:
        raise Unknown(type(e).__name__) from e


class Alipay:
    """alipay.trade.precreate, form-encoded, RSA2."""
    METHOD = "alipay.trade.precreate"
    BEGIN = '{"alipay_trade_precreate_response":'
    BEIJING = datetime.timezone(datetime.timedelta(hours=8))

    def __init__(self, http, settings):
        self.http = http
        self.url = settings["ALIPAY_URL"]       # .../gateway.do
        self.app_id = settings["ALIPAY_APP_ID"]
        self.notify_url = settings["ALIPAY_NOTIFY_URL"]
        self.keys = Keys(settings["ALIPAY_APP_KEY"],
                         settings["ALIPAY_PUBLIC_KEY"])

    async def order(self, charge):
        content = json.dumps({
            "out_trade_no": charge["order_id"],
            "total_amount": "%d.%02d" % divmod(charge["amount"], 100),
            "subject": charge["subject"]}, ensure_ascii=False)
        now = datetime.datetime.now(self.BEIJING)
        common = {
            "app_id": self.app_id, "method": self.METHOD, "format": "JSON",
            "charset": "utf-8", "sign_type": "RSA2", "version": "1.0",
            "timestamp": now.strftime("%Y-%m-%d %H:%M:%S"),
            "notify_url": self.notify_url}
        common["sign"] = self.keys.sign("&".join(
            f"{n}={v}" for n, v in
            sorted({**common, "biz_content": content}.items())))
        # charset in the address, or Alipay takes the text for GBK.
        reply = await post(self.http, self.url, params=common,
                           data={"biz_content": content})
        got = self.verified(reply.text)
        if got.get("code") == "10000":
            return got["qr_code"]
        why = got.get("sub_code") or got.get("code")
        # Other codes than 40004 are about the shop, or 20000: try again.
        if got.get("code") == "40004" and why != "ACQ.SYSTEM_ERROR":
            raise Refused(why)
        raise Unknown(why)

    def verified(self, text):
        """What is signed is the text of the first member, as it is written;
        the same text is read, and not what a parser makes of the whole."""
        try:
            if not text.startswith(self.BEGIN):
                raise ValueError
            got, end = json.JSONDecoder().raw_decode(text, len(self.BEGIN))
            rest = json.loads("{" + text[end:].partition(",")[2])
            signature = rest["sign"]
        except (ValueError, KeyError, TypeError) as e:
            raise Unknown("it is not signed") from e
        self.keys.check(text[len(self.BEGIN):end], signature)
        return got


class Wechat:
    """POST /v3/pay/transactions/native, WECHATPAY2-SHA256-RSA2048."""
    PATH = "/v3/pay/transactions/native"
    # Of what is wrong with the order; others are about the shop, or pass.
    REFUSALS = {"INVALID_REQUEST", "ORDER_CLOSED", "ORDERPAID",
                "OUT_TRADE_NO_USED", "PARAM_ERROR"}

    def __init__(self, http, settings):
        self.http = http
        self.url = settings["WECHAT_URL"]       # https://host
        self.appid = settings["WECHAT_APPID"]
        self.mchid = settings["WECHAT_MCHID"]
        self.serial = settings["WECHAT_SERIAL"]     # of the shop's certificate
        self.public_id = settings["WECHAT_PUBLIC_KEY_ID"]
        self.notify_url = settings["WECHAT_NOTIFY_URL"]
        self.keys = Keys(settings["WECHAT_KEY"], settings["WECHAT_PUBLIC_KEY"])

    async def order(self, charge):
        body = json.dumps({
            "appid": self.appid, "mchid": self.mchid,
            "description": charge["subject"],
            "out_trade_no": charge["order_id"],
            "notify_url": self.notify_url,
            "amount": {"total": charge["amount"], "currency": "CNY"}},
            ensure_ascii=False)
        now, nonce = int(time.time()), secrets.token_hex(16)
        sign = self.keys.sign(f"POST\n{self.PATH}\n{now}\n{nonce}\n{body}\n")
        reply = await post(
            self.http, self.url + self.PATH, content=body.encode(),
            headers={
                "Accept": "application/json",
                "Content-Type": "application/json",
                "Wechatpay-Serial": self.public_id,
                "Authorization": "WECHATPAY2-SHA256-RSA2048"
                f' mchid="{self.mchid}",nonce_str="{nonce}",'
                f'signature="{sign}",timestamp="{now}",'
                f'serial_no="{self.serial}"'})
        self.verify(reply)
        got = reply.json()
        if reply.status_code == 200:
            return got["code_url"]
        if got.get("code") in self.REFUSALS:
            raise Refused(got["code"])
        raise Unknown(got.get("code"))

    def verify(self, reply):
        try:
            serial, timestamp, nonce, signature = (
                reply.headers[f"Wechatpay-{n}"]
                for n in ("Serial", "Timestamp", "Nonce", "Signature"))
            age = abs(time.time() - int(timestamp))
        except (KeyError, ValueError) as e:
            raise Unknown(f"status {reply.status_code}, not signed") from e
        if serial != self.public_id or age > CLOCK_SECONDS_MAX:
            raise Unknown("it is signed with another key, or long ago")
        self.keys.check(f"{timestamp}\n{nonce}\n{reply.text}\n", signature)
