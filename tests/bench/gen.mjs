#!/usr/bin/env node
// gen.mjs - makes test keys and N signed payment notifications, as raw HTTP/1.1
// requests in the format that load.c reads:
//   "R <bytes> <kind> <trade>\n" then <bytes> of request; kind A Alipay, W WeChat
//   Pay, a/w forged (signature of something else; must be refused).
//
//   node gen.mjs --out DIR [--n 100000] [--dup 0.2] [--near 0.25] [--mix 0.5]
//                [--bad 0] [--seed 1] [--timestamp EPOCH] [--workers 2]
//                [--alipay-path PATH] [--wechat-path PATH]
//
// --dup   share of requests that repeat an earlier trade with another notify_time
//         (Alipay) or timestamp and nonces (WeChat Pay), signed anew
// --near  share of those repeats that repeat one of the last 16 requests, so that
//         both can be in flight at once
// --mix   share of Alipay
// --timestamp  the time in Wechatpay-Timestamp and notify_time (default: now); a
//         server that refuses old timestamps must be told a wide window
//
// Keys already in DIR/keys are used again. DIR/manifest.json says what was made.
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';

const SERIAL = 'PUB_KEY_ID_0000000000000000000001';
const APP_ID = '2021000000000001';
const MCHID = '1900000001';
const WX_APPID = 'wx0000000000000001';

function rng32(seed) {                       // mulberry32
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
const pad = (x, n) => String(x).padStart(n, '0');
const form = (s) => encodeURIComponent(s).replace(/%20/g, '+')
  .replace(/[!'()~]/g, (c) => '%' + c.charCodeAt(0).toString(16).toUpperCase());
function chars(r, n, set = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789') {
  let s = '';
  for (let i = 0; i < n; i++) s += set[Math.floor(r() * set.length)];
  return s;
}
const bj = (t) => new Date((t + 8 * 3600) * 1000).toISOString();       // Beijing wall clock
const dash = (t) => bj(t).slice(0, 19).replace('T', ' ');
const iso = (t) => bj(t).slice(0, 19) + '+08:00';
const day = (t) => bj(t).slice(0, 10).replace(/-/g, '');

// Everything about a trade follows from its number, so that a repeat tells of the same one.
function trade(kind, id, o) {
  const r = rng32(o.seed * 7919 + id * 2654435761);
  const fen = 1 + Math.floor(r() * 500000);
  return { r, fen, yuan: (fen / 100).toFixed(2), paid: o.ts - 5 - Math.floor(r() * 20),
    out: `ORD${day(o.ts)}${pad(id, 10)}`, openid: 'o' + chars(r, 27),
    no: kind === 'A' ? `${day(o.ts)}2200141${pad(Math.floor(r() * 1000), 3)}${pad(id, 10)}`
      : `42000${pad(Math.floor(r() * 1e5), 5)}${day(o.ts)}${pad(id, 10)}`,
    buyer: '2088' + pad(Math.floor(r() * 1e12), 12), uuid: [8, 4, 4, 4, 12].map((n) => chars(r, n, '0123456789abcdef')).join('-'),
    logon: `${chars(r, 3, '0123456789')}****${chars(r, 4, '0123456789')}` };
}

function alipay(id, attempt, forged, o) {
  const t = trade('A', id, o);
  const f = {
    gmt_create: dash(t.paid - 7), charset: 'utf-8', gmt_payment: dash(t.paid),
    notify_time: dash(o.ts + attempt * 4), subject: `测试商品 ${id % 97} & 配件 (x${1 + (id % 3)})`,
    buyer_id: t.buyer, body: 'Iphone 16 128G 黑色+保护壳', invoice_amount: t.yuan, version: '1.0',
    notify_id: `${day(o.ts)}00222${pad(id, 10)}${t.buyer.slice(-11)}`,
    fund_bill_list: JSON.stringify([{ amount: t.yuan, fundChannel: 'ALIPAYACCOUNT' }]),
    notify_type: 'trade_status_sync', out_trade_no: t.out, total_amount: t.yuan, trade_status: 'TRADE_SUCCESS',
    trade_no: t.no, auth_app_id: APP_ID, receipt_amount: t.yuan, point_amount: '0.00', buyer_pay_amount: t.yuan,
    app_id: APP_ID, seller_id: '2088000000000001', seller_email: 'merchant@example.com', buyer_logon_id: t.logon,
    passback_params: `merchantBizType%3d3C%26merchantBizNo%3d${pad(id, 12)}`,
    buyer_open_id: t.openid,
  };
  const content = Object.keys(f).sort().map((k) => `${k}=${f[k]}`).join('&');
  const sign = crypto.sign('sha256', Buffer.from(forged ? content + 'x' : content), o.alipayKey).toString('base64');
  const body = Object.keys(f).map((k) => `${k}=${form(f[k])}`).join('&') + `&sign_type=RSA2&sign=${form(sign)}`;
  return `POST ${o.alipayPath} HTTP/1.1\r\nHost: pay.example.com\r\nUser-Agent: Mozilla/4.0\r\n`
    + 'Content-Type: application/x-www-form-urlencoded; charset=utf-8\r\n'
    + `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

function wechat(id, attempt, forged, o) {
  const t = trade('W', id, o);
  const r = rng32(o.seed + id * 40503 + attempt * 97 + 13);
  const plain = JSON.stringify({
    mchid: MCHID, appid: WX_APPID, out_trade_no: t.out, transaction_id: t.no, trade_type: 'JSAPI',
    trade_state: 'SUCCESS', trade_state_desc: '支付成功', bank_type: 'OTHERS', attach: `门店${id % 31}`,
    success_time: iso(t.paid), payer: { openid: t.openid },
    amount: { total: t.fen, payer_total: t.fen, currency: 'CNY', payer_currency: 'CNY' },
  });
  const nonce = chars(r, 12);
  const c = crypto.createCipheriv('aes-256-gcm', o.apiv3, nonce);
  c.setAAD(Buffer.from('transaction'));
  const ct = Buffer.concat([c.update(plain, 'utf8'), c.final(), c.getAuthTag()]).toString('base64');
  const body = JSON.stringify({
    id: t.uuid, create_time: iso(t.paid), resource_type: 'encrypt-resource', event_type: 'TRANSACTION.SUCCESS',
    summary: '支付成功', resource: { original_type: 'transaction', algorithm: 'AEAD_AES_256_GCM', ciphertext: ct,
      associated_data: 'transaction', nonce },
  });
  const ts = o.ts + attempt * 15, hn = chars(r, 32);
  const msg = `${ts}\n${hn}\n${body}\n`;
  const sig = crypto.sign('sha256', Buffer.from(forged ? msg + 'x' : msg), o.wechatKey).toString('base64');
  return `POST ${o.wechatPath} HTTP/1.1\r\nHost: pay.example.com\r\nUser-Agent: Mozilla/4.0\r\nPragma: no-cache\r\n`
    + `Accept: */*\r\nContent-Type: application/json\r\nRequest-ID: ${chars(r, 24)}-0\r\n`
    + `Wechatpay-Nonce: ${hn}\r\nWechatpay-Serial: ${SERIAL}\r\nWechatpay-Signature: ${sig}\r\n`
    + `Wechatpay-Signature-Type: WECHATPAY2-SHA256-RSA2048\r\nWechatpay-Timestamp: ${ts}\r\n`
    + `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

function keys(dir) {
  fs.mkdirSync(dir, { recursive: true });
  const file = (n) => path.join(dir, n);
  for (const who of ['alipay', 'wechatpay']) {
    if (fs.existsSync(file(`${who}.key`))) continue;
    const k = crypto.generateKeyPairSync('rsa', { modulusLength: 2048,
      publicKeyEncoding: { type: 'spki', format: 'pem' }, privateKeyEncoding: { type: 'pkcs8', format: 'pem' } });
    fs.writeFileSync(file(`${who}.key`), k.privateKey, { mode: 0o600 });
    fs.writeFileSync(file(`${who}.pub`), k.publicKey);
    // Alipay's console shows the public key as one line of base64 without armour
    fs.writeFileSync(file(`${who}.pub.txt`), k.publicKey.replace(/-----[^-]+-----|\n/g, '') + '\n');
  }
  if (!fs.existsSync(file('apiv3.txt'))) fs.writeFileSync(file('apiv3.txt'), crypto.randomBytes(16).toString('hex'), { mode: 0o600 });
  fs.writeFileSync(file('ids.json'), JSON.stringify({ serial: SERIAL, app_id: APP_ID, mchid: MCHID, wx_appid: WX_APPID }) + '\n');
  return { alipayPem: fs.readFileSync(file('alipay.key'), 'utf8'), wechatPem: fs.readFileSync(file('wechatpay.key'), 'utf8'),
    apiv3: fs.readFileSync(file('apiv3.txt'), 'utf8').trim() };
}

if (isMainThread) {
  const a = { n: '100000', dup: '0.2', near: '0.25', mix: '0.5', bad: '0', seed: '1', workers: '2', timestamp: '',
    'alipay-path': '/notify/alipay/shop1', 'wechat-path': '/notify/wechat/shop1', out: '' };
  for (let i = 2; i < process.argv.length; i += 2) {
    const k = process.argv[i].replace(/^--/, '');
    if (!(k in a) || process.argv[i + 1] === undefined) { console.error(`gen: what is ${process.argv[i]}?`); process.exit(1); }
    a[k] = process.argv[i + 1];
  }
  if (!a.out) { console.error('gen: --out DIR is missing'); process.exit(1); }
  const t0 = Date.now();
  const n = +a.n, r = rng32(+a.seed * 31 + 7);
  const opt = { seed: +a.seed, ts: a.timestamp ? +a.timestamp : Math.floor(Date.now() / 1000),
    alipayPath: a['alipay-path'], wechatPath: a['wechat-path'], ...keys(path.join(a.out, 'keys')) };
  // the plan: for each request its kind, trade and attempt
  const plan = new Int32Array(n * 3), attempts = [], kindOf = [];
  let made = { alipay: 0, wechatpay: 0, distinct: 0, repeats: 0, forged: 0 };
  for (let i = 0; i < n; i++) {
    let id, forged = 0;
    if (r() < +a.bad) { id = kindOf.length; kindOf.push(r() < +a.mix ? 0 : 1); attempts.push(-1); forged = 1; made.forged++; }
    else if (i > 16 && r() < +a.dup) {
      for (let tries = 0; ; tries++) {
        id = r() < +a.near && tries < 8 ? plan[(i - 1 - Math.floor(r() * 16)) * 3 + 1] : Math.floor(r() * kindOf.length);
        if (attempts[id] >= 0) break;
      }
      made.repeats++;
    } else { id = kindOf.length; kindOf.push(r() < +a.mix ? 0 : 1); attempts.push(0); made.distinct++; }
    plan[i * 3] = kindOf[id] + (forged ? 2 : 0); plan[i * 3 + 1] = id; plan[i * 3 + 2] = forged ? 0 : attempts[id]++;
    if (!forged) made[kindOf[id] ? 'wechatpay' : 'alipay']++;
  }
  const CH = 1000, chunks = Math.ceil(n / CH), done = new Map();
  const fd = fs.openSync(path.join(a.out, 'requests.bin'), 'w');
  let next = 0, given = 0;
  await Promise.all(Array.from({ length: +a.workers }, () => new Promise((ok, no) => {
    const w = new Worker(new URL(import.meta.url), { workerData: opt });
    const give = () => {
      if (given >= chunks) { w.postMessage(null); ok(); return; }
      const at = given++;
      w.postMessage({ at, plan: plan.slice(at * CH * 3, Math.min(n, (at + 1) * CH) * 3) });
    };
    w.on('error', no);
    w.on('message', (m) => {
      done.set(m.at, m.buf);
      for (; done.has(next); next++) { fs.writeSync(fd, done.get(next)); done.delete(next); }
      give();
    });
    give();
  })));
  fs.closeSync(fd);
  const man = { n, ...made, seed: +a.seed, dup: +a.dup, near: +a.near, timestamp: opt.ts,
    alipay_path: opt.alipayPath, wechat_path: opt.wechatPath, seconds: (Date.now() - t0) / 1000 };
  fs.writeFileSync(path.join(a.out, 'manifest.json'), JSON.stringify(man) + '\n');
  console.log(JSON.stringify(man));
} else {
  const o = { ...workerData, alipayKey: crypto.createPrivateKey(workerData.alipayPem),
    wechatKey: crypto.createPrivateKey(workerData.wechatPem), apiv3: Buffer.from(workerData.apiv3) };
  parentPort.on('message', (m) => {
    if (!m) { parentPort.close(); return; }
    const out = [];
    for (let i = 0; i < m.plan.length; i += 3) {
      const k = m.plan[i], id = m.plan[i + 1], forged = k > 1;
      const req = Buffer.from(k & 1 ? wechat(id, m.plan[i + 2], forged, o) : alipay(id, m.plan[i + 2], forged, o));
      out.push(Buffer.from(`R ${req.length} ${forged ? 'aw'[k & 1] : 'AW'[k]} ${id}\n`), req);
    }
    parentPort.postMessage({ at: m.at, buf: Buffer.concat(out) });
  });
}
