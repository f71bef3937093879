#!/usr/bin/env python3
"""An application that is pushed to: sink.py PORT FOLDER

Appends each request to FOLDER/got, one JSON object a line, and answers with the
status in FOLDER/answer (200 where there is none) and the body "answer STATUS".
A status of 0 answers nothing until the connection is closed.
"""
import http.server
import json
import os
import sys
import threading

port, folder = int(sys.argv[1]), sys.argv[2]
lock = threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            with open(os.path.join(folder, "answer")) as f:
                status = int(f.read())
        except FileNotFoundError:
            status = 200
        got = {
            "id": self.headers["webhook-id"],
            "redelivery": self.headers["webhook-redelivery"],
            "status": status,
            "event": json.loads(body),
        }
        with lock, open(os.path.join(folder, "got"), "a") as f:
            f.write(json.dumps(got) + "\n")
        if status == 0:
            self.rfile.read(1)
            return
        answer = f"answer {status}".encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
