"""Peer: FastAPI + uvicorn + asyncpg, the idempotency table of the field's templates.

KEYS (folder of gen.mjs), POOL (connections a worker), PGHOST/PGPORT/PGUSER/PGDATABASE
DB=tx     SELECT the record; INSERT it ON CONFLICT DO NOTHING; insert the event;
          UPDATE completed_at; all in one transaction (a repeat in flight waits for it)
DB=multi  the same steps with the claim (locked_at) committed before the work, as the
          templates do it; a repeat in flight polls until the first one is through
DB=off    no database step (to measure what it adds)
"""
import asyncio
import base64
import hashlib
import json
import os
from decimal import Decimal
from urllib.parse import parse_qsl

import asyncpg
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse

DB = os.environ.get("DB", "tx")


def key(name):
    with open(os.path.join(os.environ["KEYS"], name), encoding="utf-8") as f:
        return f.read().strip()


IDS = json.loads(key("ids.json"))
ALIPAY = serialization.load_pem_public_key(key("alipay.pub").encode())
WECHAT = serialization.load_pem_public_key(key("wechatpay.pub").encode())
GCM = AESGCM(key("apiv3.txt").encode())
PKCS1, SHA256 = padding.PKCS1v15(), hashes.SHA256()

app = FastAPI()
pool = None


@app.on_event("startup")
async def startup():
    global pool
    if DB != "off":
        size = int(os.environ.get("POOL", "16"))
        pool = await asyncpg.create_pool(min_size=size, max_size=size)


@app.on_event("shutdown")
async def shutdown():
    if pool:
        await pool.close()


SELECT = "SELECT id, response_status, completed_at FROM idempotency_keys WHERE key = $1"
CLAIM = """INSERT INTO idempotency_keys (key, request_path, request_hash, locked_at)
           VALUES ($1, $2, $3, now()) ON CONFLICT (key) DO NOTHING RETURNING id"""
EVENT = """INSERT INTO events (idempotency_key, provider, event_type, trade_no, out_trade_no, amount_fen, payload)
           VALUES ($1, $2, $3, $4, $5, $6, $7)"""
DONE = """UPDATE idempotency_keys SET response_status = 200, response_body = $2, completed_at = now(), locked_at = NULL
          WHERE id = $1"""


async def once(path, raw, answer, k, *event):
    """Stores the event unless its key was stored before; True when it is new."""
    if DB == "off":
        return True
    digest = hashlib.sha256(raw).hexdigest()
    async with pool.acquire() as c:
        if DB == "tx":
            async with c.transaction():
                rec = await c.fetchrow(SELECT, k)
                if rec and rec["completed_at"]:
                    return False
                row = await c.fetchrow(CLAIM, k, path, digest)
                if not row:                      # somebody else committed it meanwhile
                    return False
                await c.execute(EVENT, k, *event)
                await c.execute(DONE, row["id"], answer)
            return True
        for _ in range(500):
            rec = await c.fetchrow(SELECT, k)
            if rec and rec["completed_at"]:
                return False
            if not rec:
                row = await c.fetchrow(CLAIM, k, path, digest)
                if row:
                    async with c.transaction():
                        await c.execute(EVENT, k, *event)
                        await c.execute(DONE, row["id"], answer)
                    return True
            await asyncio.sleep(0.01)
        raise TimeoutError("the first delivery is still at work")


@app.post("/notify/alipay/shop1")
async def alipay(request: Request):
    raw = await request.body()
    f = dict(parse_qsl(raw.decode("utf-8"), keep_blank_values=True))
    signed = "&".join(f"{k}={f[k]}" for k in sorted(f) if k not in ("sign", "sign_type") and f[k] != "")
    try:
        ALIPAY.verify(base64.b64decode(f["sign"]), signed.encode(), PKCS1, SHA256)
    except (InvalidSignature, KeyError, ValueError):
        return PlainTextResponse("fail", 401)
    if f["app_id"] != IDS["app_id"] or f["sign_type"] != "RSA2":
        return PlainTextResponse("fail", 401)
    await once("/notify/alipay/shop1", raw, '"success"', f"alipay:{f['app_id']}:{f['trade_no']}:{f['trade_status']}",
               "alipay", f["trade_status"], f["trade_no"], f["out_trade_no"],
               int(Decimal(f["total_amount"]) * 100), json.dumps(f, ensure_ascii=False))
    return PlainTextResponse("success")


@app.post("/notify/wechat/shop1")
async def wechatpay(request: Request):
    raw = await request.body()
    h = request.headers
    try:
        if h["wechatpay-serial"] != IDS["serial"]:
            raise InvalidSignature
        msg = b"%s\n%s\n%s\n" % (h["wechatpay-timestamp"].encode(), h["wechatpay-nonce"].encode(), raw)
        WECHAT.verify(base64.b64decode(h["wechatpay-signature"]), msg, PKCS1, SHA256)
        n = json.loads(raw)
        r = n["resource"]
        t = json.loads(GCM.decrypt(r["nonce"].encode(), base64.b64decode(r["ciphertext"]), r["associated_data"].encode()))
    except (InvalidSignature, InvalidTag, KeyError, ValueError):
        return JSONResponse({"code": "FAIL", "message": "signature"}, 401)
    if t["mchid"] != IDS["mchid"]:
        return JSONResponse({"code": "FAIL", "message": "mchid"}, 401)
    await once("/notify/wechat/shop1", raw, '{"code": "SUCCESS"}', f"wechatpay:{t['mchid']}:{t['transaction_id']}:{n['event_type']}",
               "wechatpay", n["event_type"], t["transaction_id"], t["out_trade_no"], t["amount"]["total"],
               json.dumps(t, ensure_ascii=False))
    return JSONResponse({"code": "SUCCESS", "message": "成功"})
