"""Prepared requests for the guard: charges under an Idempotency-Key, in the format
that load.c reads. Keys are the same at every call; a run begins on an empty
database."""
import uuid

RECORD = "R {size} C {number}\n{request}"
REQUEST = ("POST /v1/charges HTTP/1.1\r\n"
           "Host: 127.0.0.1\r\n"
           "Content-Type: application/json\r\n"
           "Idempotency-Key: {key}\r\n"
           "Content-Length: {size}\r\n\r\n{body}")
BODY = ('{{"out_trade_no":"ORD20261130{number:08}","amount":1234,"currency":"CNY",'
        '"subject":"two tickets for the 10:20 to Hangzhou"}}')


def request(number):
    body = BODY.format(number=number)
    key = uuid.uuid5(uuid.NAMESPACE_OID, str(number))
    return REQUEST.format(key=key, size=len(body), body=body)


def write(path, count, clicks):
    """count requests, each key clicks times in a row."""
    with open(path, "w", encoding="ascii", newline="") as f:
        for i in range(count):
            number = i // clicks
            text = request(number)
            f.write(RECORD.format(size=len(text), number=number, request=text))
