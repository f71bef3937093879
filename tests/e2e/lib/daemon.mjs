// A daemon with its configuration, keys and database, as a merchant has it.
import { execFile, execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { bare, rsa, secret } from './keys.mjs';

const BUILD = process.env.PN_BUILD;
export const IDS = {
  appId: '2021000000000001', sellerId: '2088000000000001', mchid: '1900000001',
  wxAppid: 'wx0000000000000001', serial: 'PUB_KEY_ID_0000000000000000000001',
};

async function freePort() {
  const s = net.createServer();
  await new Promise((ok) => { s.listen(0, '127.0.0.1', ok); });
  const { port } = s.address();
  await new Promise((ok) => { s.close(ok); });
  return port;
}

function configuration(k, port, sections) {
  const wechat = (tenant, v2) => `[wechat ${tenant}]
mchid = ${IDS.mchid}
appid = ${IDS.wxAppid}
api_v3_key_file = v3.txt
api_v2_key_file = v2.txt
v2_sign_type = ${v2}
public_key = ${IDS.serial}:wechat.pem
test = yes
test_private_key = wechat.key
`;
  return `[server]
listen = 127.0.0.1:${port}
threads = 2
commit_timeout = 20s
[database]
dsn = ${process.env.PN_DSN}
[alipay shop1]
app_id = ${IDS.appId}
seller_id = ${IDS.sellerId}
public_key = alipay.txt
test = yes
test_private_key = alipay.key
${wechat('shop1', 'MD5')}${wechat('hmac', 'HMAC-SHA256')}${sections}`;
}

export class Daemon {
  // sections: more of the configuration; files: what it names, in their folder.
  static async start({ sections = '', files: more = {} } = {}) {
    const d = new Daemon();
    d.dir = fs.mkdtempSync(path.join(os.tmpdir(), 'pn-e2e.'));
    d.alipay = rsa(); d.wechat = rsa(); d.stranger = rsa();
    d.v3 = secret(); d.v2 = secret();
    d.port = await freePort();
    d.conf = path.join(d.dir, 'paynotifyd.conf');
    const files = { 'alipay.txt': bare(d.alipay.publicKey), 'alipay.key': d.alipay.privateKey,
      'wechat.pem': d.wechat.publicKey, 'wechat.key': d.wechat.privateKey,
      'v3.txt': d.v3, 'v2.txt': d.v2, 'paynotifyd.conf': configuration(d, d.port, sections),
      ...more };
    for (const [name, text] of Object.entries(files)) {
      fs.writeFileSync(path.join(d.dir, name), text, { mode: 0o600 });
    }
    d.ctl('db', 'migrate');
    await d.#spawn();
    return d;
  }

  async #spawn() {
    this.log = fs.openSync(path.join(this.dir, 'log'), 'a');
    this.process = spawn(path.join(BUILD, 'paynotifyd'), ['-c', this.conf],
      { stdio: ['ignore', this.log, this.log] });
    this.exited = new Promise((ok) => { this.process.on('exit', (code) => ok(code)); });
    await this.#listening();
  }

  // As an operator does who changed the configuration.
  async restart(sections) {
    await this.#end();
    fs.writeFileSync(this.conf, configuration(this, this.port, sections));
    await this.#spawn();
  }

  async #listening() {
    for (let i = 0; i < 200; i++) {
      if (this.process.exitCode !== null) throw Error(`daemon ended:\n${this.logText()}`);
      const up = await new Promise((ok) => {
        const s = net.connect(this.port, '127.0.0.1', () => { s.destroy(); ok(true); });
        s.on('error', () => ok(false));
      });
      if (up) return;
      await new Promise((ok) => { setTimeout(ok, 50); });
    }
    throw Error(`daemon does not listen:\n${this.logText()}`);
  }

  logText() { return fs.readFileSync(path.join(this.dir, 'log'), 'utf8'); }

  // Ends it as systemd would; the exit status is the daemon's.
  async #end() {
    this.process.kill('SIGTERM');
    const code = await this.exited;
    fs.closeSync(this.log);
    if (code !== 0) throw Error(`daemon ended with ${code}:\n${this.logText()}`);
  }

  async stop() {
    try { await this.#end(); } finally { fs.rmSync(this.dir, { recursive: true }); }
  }

  // -c FILE stands behind the command's words.
  #args(args) {
    const at = args.findIndex((a) => a.startsWith('-'));
    const words = at < 0 ? args.length : at;
    return [...args.slice(0, words), '-c', this.conf, ...args.slice(words)];
  }

  ctl(...args) {
    return execFileSync(path.join(BUILD, 'paynotifyctl'), this.#args(args),
      { stdio: ['ignore', 'pipe', 'inherit'] });
  }

  // One that goes on: a child process, its standard output a pipe.
  ctlSpawn(...args) {
    return spawn(path.join(BUILD, 'paynotifyctl'), this.#args(args),
      { stdio: ['ignore', 'pipe', 'inherit'] });
  }

  // Raw captures that trigger makes; nothing is sent.
  trigger(account, event, ...more) {
    return this.ctl('trigger', event, '--account', account, '--out', '-', ...more);
  }

  post(route, headers, body) {
    return new Promise((ok, no) => {
      const bytes = Buffer.from(body);
      const r = http.request({ host: '127.0.0.1', port: this.port, method: 'POST',
        path: `/notify/${route}`, headers: { ...headers, 'Content-Length': bytes.length } }, (res) => {
        const parts = [];
        res.on('data', (p) => parts.push(p));
        res.on('end', () => ok({ status: res.statusCode, type: res.headers['content-type'],
          length: res.headers['content-length'], body: Buffer.concat(parts).toString('latin1') }));
      });
      r.on('error', no);
      r.end(bytes);
    });
  }
}

export function sql(text) {
  return new Promise((ok, no) => {
    execFile('psql', ['-XAtq', '-v', 'ON_ERROR_STOP=1', '-c', text],
      (error, out) => (error ? no(error) : ok(out.trim())));
  });
}

// The events of an order: "type amount" a line, in order of recording.
export const events = (orderNo) => sql(
  `SELECT type || ' ' || coalesce(amount::text, '-') FROM paynotify.events
   WHERE out_trade_no = '${orderNo}' ORDER BY seq`);
