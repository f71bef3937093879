"""A charges API as a shop writes it, behind the gateway of paynotifyd:

    POST /v1/charges {"order_id", "amount" (in fen), "provider", "subject"}

makes an order at Alipay (alipay.trade.precreate) or at WeChat Pay (Native) and
answers 201 with the code that the buyer scans. The gateway asks for each
Idempotency-Key once at a time, and once in all when it gets an answer. What is
left to the API, whichever its language:

- The charge is stored before the provider is asked, and its out_trade_no is the
  order's own id. When this process, the gateway or a line dies in between,
  attempt 2 finds the row and asks again with that number, under which the
  provider makes one order and no other.
- An answer is made of the row alone, so that each attempt gives the same.
- A stale attempt is refused: one that was paused for longer than its lease must
  not act beside the next (Idempotency-Attempt only grows).
- A 4xx is an answer that the gateway keeps: for what is so for good. Where
  nobody knows what the provider did, it is 503, and the client tries again.
  `unknown = release` is right for it, since what is asked twice is one order;
  with the default the next try waits until the lease has ended.

PGHOST, PGDATABASE, PGUSER ... say where charges.sql is, ALIPAY_... and
WECHAT_... whose orders these are (see pay.py). uvicorn charges:app
"""
import json
import os
import re
from typing import Literal

import asyncpg
import httpx
from fastapi import FastAPI, Header, Response
from pydantic import BaseModel, Field, conint

from pay import Alipay, Refused, Unknown, Wechat

app = FastAPI()
db = http = providers = None
ORDER_ID = re.compile(r"[0-9A-Za-z_-]{6,32}")   # what both providers take

# No row comes back if the order is another one, another key's, or if a later
# attempt has been here.
CLAIM = """
INSERT INTO charges AS c (order_id, amount, provider, subject, key, attempt)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (order_id) DO UPDATE SET attempt = excluded.attempt
WHERE (c.amount, c.provider, c.subject, c.key)
	= (excluded.amount, excluded.provider, excluded.subject, excluded.key)
AND c.attempt <= excluded.attempt
RETURNING *"""
# The first code stays. No row: a later attempt has taken over meanwhile.
STORE = """
UPDATE charges SET code = coalesce(code, $3)
WHERE order_id = $1 AND attempt = $2
RETURNING *"""


class Order(BaseModel):
    order_id: str
    amount: conint(strict=True, ge=1, le=10_000_000_000)
    provider: Literal["alipay", "wechat"]
    subject: str = Field(min_length=1, max_length=127)


@app.on_event("startup")
async def startup():
    global db, http, providers
    db = await asyncpg.create_pool(min_size=0, max_size=10)
    http = httpx.AsyncClient(
        timeout=5, headers={"User-Agent": "charges/1"},
        limits=httpx.Limits(max_connections=32, max_keepalive_connections=32))
    providers = {"alipay": Alipay(http, os.environ),
                 "wechat": Wechat(http, os.environ)}


@app.on_event("shutdown")
async def shutdown():
    await http.aclose()
    await db.close()


def answer(status, row):
    value = {n: row[n] for n in ("order_id", "amount", "provider", "subject",
                                 "code")}
    value["created_at"] = row["created_at"].isoformat()
    return Response(json.dumps(value), status,
                    {"Location": f"/v1/charges/{row['order_id']}"},
                    "application/json")


def problem(status, text, **headers):
    return Response(json.dumps({"title": text, "status": status}), status,
                    headers, "application/problem+json")


@app.post("/v1/charges")
async def charge(order: Order, idempotency_key: str = Header(),
                 idempotency_attempt: int = Header()):
    if not ORDER_ID.fullmatch(order.order_id):
        return problem(422, "order_id: 6 to 32 letters, digits, _ or -")
    row = await db.fetchrow(CLAIM, order.order_id, order.amount,
                            order.provider, order.subject, idempotency_key,
                            idempotency_attempt)
    if row is None:
        return problem(409, "this order was charged differently, under"
                       " another key, or by a later attempt")
    if row["code"] is None:
        try:
            code = await providers[order.provider].order(row)
        except Refused as e:
            return problem(422, f"{order.provider} refuses: {e}")
        except Unknown as e:
            return problem(503, f"{order.provider} gave no answer: {e}",
                           **{"Retry-After": "1"})
        row = await db.fetchrow(STORE, order.order_id, idempotency_attempt,
                                code)
        if row is None:
            return problem(409, "a later attempt has taken over")
    return answer(201, row)


@app.get("/v1/charges/{order_id}")
async def show(order_id: str):
    row = await db.fetchrow("SELECT * FROM charges WHERE order_id = $1",
                            order_id)
    return answer(200, row) if row else problem(404, "there is no such charge")
