// Peer: Fastify + pg with the SDKs from npm.
//   PORT, KEYS (folder of gen.mjs), WORKERS (1: no cluster), POOL (connections a worker),
//   PGHOST/PGPORT/PGUSER/PGDATABASE,
//   DB=tx|cte|off   tx: BEGIN, two INSERTs, COMMIT; cte: both INSERTs in one statement;
//                   off: no database step (to measure what it adds)
//   VERIFY=sdk|native   sdk: alipay-sdk and wechatpay-node-v3; native: node:crypto with
//                   parsed keys, one RSA operation a request (what a team that profiled would write)
import cluster from 'node:cluster';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';

const env = process.env;
const WORKERS = +(env.WORKERS || 1), DB = env.DB || 'tx', VERIFY = env.VERIFY || 'sdk';

if (WORKERS > 1 && cluster.isPrimary) {
  for (let i = 0; i < WORKERS; i++) cluster.fork();
  const stop = () => { for (const w of Object.values(cluster.workers)) w.process.kill('SIGTERM'); };
  process.on('SIGTERM', stop); process.on('SIGINT', stop);
} else {
  const { default: Fastify } = await import('fastify');
  const { default: formbody } = await import('@fastify/formbody');
  const { default: pg } = await import('pg');
  const { AlipaySdk } = await import('alipay-sdk');
  const { default: WxPay } = await import('wechatpay-node-v3');

  const key = (n) => fs.readFileSync(path.join(env.KEYS, n), 'utf8').trim();
  const ids = JSON.parse(key('ids.json'));
  const apiv3 = key('apiv3.txt');
  const alipay = new AlipaySdk({ appId: ids.app_id, privateKey: key('alipay.key'), keyType: 'PKCS8', alipayPublicKey: key('alipay.pub.txt') });
  const wx = new WxPay({ appid: ids.wx_appid, mchid: ids.mchid, publicKey: key('wechatpay.pub'), privateKey: key('wechatpay.key'), serial_no: 'X', key: apiv3 });
  WxPay.certificates[ids.serial] = key('wechatpay.pub');
  const alipayPub = crypto.createPublicKey(key('alipay.pub')), wechatPub = crypto.createPublicKey(key('wechatpay.pub'));

  const pool = DB === 'off' ? null : new pg.Pool({ max: +(env.POOL || 16) });
  pool?.on('error', (e) => console.error('pool:', e.message));

  const INSERT_KEY = { name: 'ik', text: `INSERT INTO idempotency_keys (key, request_path, request_hash, response_status, response_body, completed_at)
    VALUES ($1, $2, $3, 200, $4, now()) ON CONFLICT (key) DO NOTHING` };
  const INSERT_EVENT = { name: 'ie', text: `INSERT INTO events (idempotency_key, provider, event_type, trade_no, out_trade_no, amount_fen, payload)
    VALUES ($1, $2, $3, $4, $5, $6, $7)` };
  const BOTH = { name: 'both', text: `WITH k AS (INSERT INTO idempotency_keys (key, request_path, request_hash, response_status, response_body, completed_at)
      VALUES ($1, $2, $3, 200, $4, now()) ON CONFLICT (key) DO NOTHING RETURNING key)
    INSERT INTO events (idempotency_key, provider, event_type, trade_no, out_trade_no, amount_fen, payload)
    SELECT k.key, $5, $6, $7, $8, $9, $10 FROM k` };

  // true: new; false: seen before
  async function store(e, requestPath, raw, answer) {
    if (!pool) return true;
    const hash = crypto.createHash('sha256').update(raw).digest('hex');
    const k = [e.key, requestPath, hash, answer];
    const ev = [e.provider, e.type, e.tradeNo, e.outTradeNo, e.fen, e.payload];
    if (DB === 'cte') return (await pool.query({ ...BOTH, values: [...k, ...ev] })).rowCount === 1;
    const c = await pool.connect();
    try {
      await c.query('BEGIN');
      const isNew = (await c.query({ ...INSERT_KEY, values: k })).rowCount === 1;
      if (isNew) await c.query({ ...INSERT_EVENT, values: [e.key, ...ev] });
      await c.query('COMMIT');
      return isNew;
    } catch (err) {
      await c.query('ROLLBACK').catch(() => {});
      throw err;
    } finally { c.release(); }
  }

  const app = Fastify({ logger: false, bodyLimit: 65536, keepAliveTimeout: 60000 });
  await app.register(formbody);
  // WeChat Pay signs the bytes of the body, so keep them
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (req, body, done) => done(null, body));

  function alipaySigned(f) {
    if (VERIFY === 'sdk') return alipay.checkNotifySignV2(f);
    const s = Object.keys(f).filter((k) => k !== 'sign' && k !== 'sign_type' && f[k] !== '').sort().map((k) => `${k}=${f[k]}`).join('&');
    return f.sign_type === 'RSA2' && crypto.verify('sha256', Buffer.from(s), alipayPub, Buffer.from(f.sign || '', 'base64'));
  }
  async function wechatSigned(h, body) {
    const timestamp = h['wechatpay-timestamp'], nonce = h['wechatpay-nonce'], serial = h['wechatpay-serial'], signature = h['wechatpay-signature'];
    if (serial !== ids.serial || !signature) return false;
    if (VERIFY === 'sdk') return wx.verifySign({ timestamp, nonce, body, serial, signature });
    return crypto.verify('sha256', Buffer.from(`${timestamp}\n${nonce}\n${body}\n`), wechatPub, Buffer.from(signature, 'base64'));
  }
  function decrypt(r) {
    if (VERIFY === 'sdk') return wx.decipher_gcm(r.ciphertext, r.associated_data, r.nonce);
    const b = Buffer.from(r.ciphertext, 'base64'), d = crypto.createDecipheriv('aes-256-gcm', apiv3, r.nonce);
    d.setAAD(Buffer.from(r.associated_data)); d.setAuthTag(b.subarray(-16));
    return JSON.parse(Buffer.concat([d.update(b.subarray(0, -16)), d.final()]).toString());
  }

  app.post('/notify/alipay/shop1', async (req, reply) => {
    const f = req.body;
    reply.type('text/plain');
    if (!alipaySigned(f) || f.app_id !== ids.app_id) return reply.code(401).send('fail');
    await store({ key: `alipay:${f.app_id}:${f.trade_no}:${f.trade_status}`, provider: 'alipay', type: f.trade_status, tradeNo: f.trade_no,
      outTradeNo: f.out_trade_no, fen: Math.round(f.total_amount * 100), payload: JSON.stringify(f) }, '/notify/alipay/shop1', f.sign, '"success"');
    return 'success';
  });
  app.post('/notify/wechat/shop1', async (req, reply) => {
    if (!await wechatSigned(req.headers, req.body)) return reply.code(401).send({ code: 'FAIL', message: 'signature' });
    const n = JSON.parse(req.body);
    const t = decrypt(n.resource);
    if (t.mchid !== ids.mchid) return reply.code(401).send({ code: 'FAIL', message: 'mchid' });
    await store({ key: `wechatpay:${t.mchid}:${t.transaction_id}:${n.event_type}`, provider: 'wechatpay', type: n.event_type, tradeNo: t.transaction_id,
      outTradeNo: t.out_trade_no, fen: t.amount.total, payload: JSON.stringify(t) }, '/notify/wechat/shop1', req.body, '{"code":"SUCCESS"}');
    return { code: 'SUCCESS', message: '成功' };
  });
  await app.listen({ host: '127.0.0.1', port: +env.PORT, backlog: 1024 });
  const stop = async () => { await app.close(); await pool?.end(); process.exit(0); };
  process.on('SIGTERM', stop); process.on('SIGINT', stop);
}
