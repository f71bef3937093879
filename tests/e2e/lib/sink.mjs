// An application that is pushed to: an endpoint is a path. What it answers is a
// function of the test; what it got is kept, whole.
import http from 'node:http';
import https from 'node:https';

const WAIT_MS_MAX = 20000; // for what must come; then the test fails

export class Sink {
  // tls: { key, cert } of an https server
  static async start(tls) {
    const s = new Sink();
    s.got = []; // { path, headers, body, id, event, answered } in order of arrival
    s.answers = new Map();
    s.waiters = new Set();
    const serve = (req, res) => s.#serve(req, res);
    s.server = tls ? https.createServer(tls, serve) : http.createServer(serve);
    await new Promise((ok) => { s.server.listen(0, '127.0.0.1', ok); });
    s.base = `${tls ? 'https://localhost' : 'http://127.0.0.1'}:${s.server.address().port}`;
    return s;
  }

  // path: (push) => { status, headers, body }; without one it is 200.
  answer(path, how) { this.answers.set(path, how); }

  #serve(req, res) {
    const parts = [];
    req.on('data', (p) => parts.push(p));
    req.on('end', () => {
      const body = Buffer.concat(parts);
      const push = { path: req.url, method: req.method, headers: req.headers, body,
        id: req.headers['webhook-id'] };
      // What is redirected may come without a body.
      push.event = body.length ? JSON.parse(body) : null;
      const { status = 200, headers = {}, body: text = '' } = this.answers.get(req.url)?.(push) ?? {};
      push.status = status;
      this.got.push(push);
      res.writeHead(status, headers).end(text);
      for (const w of this.waiters) w();
    });
  }

  at(path) { return this.got.filter((p) => p.path === path); }
  of(path, order) { return this.at(path).filter((p) => p.event.out_trade_no === order); }

  // Until so many have come of an order.
  async wait(path, order, count = 1) {
    const found = () => this.of(path, order);
    if (found().length < count) {
      await new Promise((ok, no) => {
        const late = setTimeout(() => {
          this.waiters.delete(look);
          no(Error(`${path} got ${found().length} of ${count} of ${order} in ${WAIT_MS_MAX} ms`));
        }, WAIT_MS_MAX);
        const look = () => {
          if (found().length < count) return;
          clearTimeout(late);
          this.waiters.delete(look);
          ok();
        };
        this.waiters.add(look);
      });
    }
    return found();
  }

  async stop() {
    this.server.closeAllConnections();
    await new Promise((ok) => { this.server.close(ok); });
  }
}

// A condition of the database; polled, since nothing tells of it.
export async function until(what, look) {
  const end = Date.now() + WAIT_MS_MAX;
  for (;;) {
    const r = await look();
    if (r) return r;
    if (Date.now() > end) throw Error(`${what}: not within ${WAIT_MS_MAX} ms`);
    await new Promise((ok) => { setTimeout(ok, 20); });
  }
}
