// Peer: the idempotency middleware of the field in Express + redis: SET key NX PX
// claims, the answer takes its place. The work is done right here and takes no time:
// there is no upstream to ask.
//   PORT, REDIS (port), WORKERS (processes)
import cluster from 'node:cluster';
import crypto from 'node:crypto';
import express from 'express';
import { createClient } from 'redis';

const env = process.env;
const LOCK_MS = 30_000, TTL_MS = 24 * 3600 * 1000;

function idempotency(redis) {
  return async (req, res, next) => {
    const key = req.get('Idempotency-Key');
    if (!key || key.length > 255) return res.status(400).json({ title: 'Idempotency-Key must have 1 to 255 characters' });
    const name = `idempotency:shop1:${req.method}:${req.path}:${key}`;
    const hash = crypto.createHash('sha256').update(JSON.stringify(req.body)).digest('base64');
    const claimed = await redis.set(name, JSON.stringify({ hash }), { condition: 'NX', expiration: { type: 'PX', value: LOCK_MS } });
    if (claimed === null) {
      const seen = JSON.parse(await redis.get(name));
      if (seen && seen.hash !== hash) return res.status(422).json({ title: 'the key was used for another request' });
      if (!seen?.status) return res.status(409).set('Retry-After', '1').json({ title: 'the first request is still at work' });
      return res.status(seen.status).set('Idempotency-Replayed', 'true').type('json').send(seen.body);
    }
    res.json = (value) => {
      const body = JSON.stringify(value);
      const settled = res.statusCode >= 500 ? redis.del(name)
        : redis.set(name, JSON.stringify({ hash, status: res.statusCode, body }), { expiration: { type: 'PX', value: TTL_MS } });
      settled.then(() => res.type('json').send(body), next);
      return res;
    };
    next();
  };
}

if (cluster.isPrimary) {
  for (let i = 0; i < +(env.WORKERS || 2); i++) cluster.fork();
  process.on('SIGTERM', () => { for (const w of Object.values(cluster.workers)) w.process.kill('SIGTERM'); });
} else {
  const redis = createClient({ socket: { host: '127.0.0.1', port: +env.REDIS } });
  redis.on('error', (e) => console.error('redis:', e.message));
  await redis.connect();
  const app = express();
  app.disable('x-powered-by').disable('etag');
  app.use(express.json());
  app.post('/v1/charges', idempotency(redis), (req, res) => {
    res.status(201).json({ id: 'ch_20261130000001', amount: req.body.amount, currency: 'CNY', status: 'created' });
  });
  const server = app.listen({ host: '127.0.0.1', port: +env.PORT, backlog: 1024 });
  server.keepAliveTimeout = 60_000;
  process.on('SIGTERM', () => process.exit(0));
}
