// A signer of its own for the HTTP tests: makes test keys in DIR/keys, then
// reads one JSON object a line and writes the signed request as one:
//
//   {"provider":"alipay","fields":{...}}        -> {"headers":{},"body":base64}
//   {"provider":"wechat","plain":{...},"type":"TRANSACTION.SUCCESS"}
//
// "forge": true signs something else; "key": "other" encrypts with a key that
// the daemon has not; "age": seconds takes that much off the time; "bytes": true
// takes each character of the fields as a byte (of another charset than UTF-8).
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import readline from 'node:readline';

const keys = path.join(process.argv[2], 'keys');
fs.mkdirSync(keys, { recursive: true });
const pair = () => crypto.generateKeyPairSync('rsa', { modulusLength: 2048 });
const write = (name, text) =>
  fs.writeFileSync(path.join(keys, name), text, { mode: 0o600 });
const alipay = pair();
const wechat = pair();
const apiv3 = crypto.randomBytes(16).toString('hex');
const other = crypto.randomBytes(16).toString('hex');
for (const [name, key] of [['alipay.pem', alipay], ['wechat.pem', wechat]]) {
  write(name, key.publicKey.export({ type: 'spki', format: 'pem' }));
}
write('apiv3.txt', apiv3);

const form = (s, encoding) => [...Buffer.from(s, encoding)].map((b) => {
  const c = String.fromCharCode(b);
  if (/[A-Za-z0-9_.*-]/.test(c)) return c;
  return c === ' ' ? '+' : '%' + b.toString(16).toUpperCase().padStart(2, '0');
}).join('');

function signAlipay({ fields, forge, bytes }) {
  const encoding = bytes ? 'latin1' : 'utf8';
  const content = Object.keys(fields).sort()
    .map((k) => `${k}=${fields[k]}`).join('&');
  const sign = crypto.sign('sha256', Buffer.from(content + (forge ? 'x' : ''), encoding),
    alipay.privateKey).toString('base64');
  const all = { ...fields, sign_type: 'RSA2', sign };
  const body = Object.keys(all).map((k) => `${k}=${form(all[k], encoding)}`).join('&');
  return {
    headers: { 'Content-Type': 'application/x-www-form-urlencoded; charset=utf-8' },
    body: Buffer.from(body).toString('base64'),
  };
}

function encrypt(plain, key) {
  const nonce = crypto.randomBytes(6).toString('hex');
  const cipher = crypto.createCipheriv('aes-256-gcm', key, nonce);
  cipher.setAAD(Buffer.from('transaction'));
  const ciphertext = Buffer.concat([
    cipher.update(JSON.stringify(plain)), cipher.final(), cipher.getAuthTag()]);
  return {
    algorithm: 'AEAD_AES_256_GCM', original_type: 'transaction', nonce,
    associated_data: 'transaction', ciphertext: ciphertext.toString('base64'),
  };
}

function signWechat({ plain, type, id, forge, key, age }) {
  const body = JSON.stringify({
    id, create_time: '2026-03-01T10:00:00+08:00',
    resource_type: 'encrypt-resource', event_type: type, summary: 'x',
    resource: encrypt(plain, key === 'other' ? other : apiv3),
  });
  const time = String(Math.floor(Date.now() / 1000) - (age ?? 0));
  const nonce = crypto.randomBytes(16).toString('hex');
  const message = `${time}\n${nonce}\n${body}${forge ? 'x' : ''}\n`;
  return {
    headers: {
      'Content-Type': 'application/json',
      'Wechatpay-Timestamp': time,
      'Wechatpay-Nonce': nonce,
      'Wechatpay-Serial': 'PUB_KEY_ID_0000000000000000000001',
      'Wechatpay-Signature': crypto.sign('sha256', Buffer.from(message),
        wechat.privateKey).toString('base64'),
    },
    body: Buffer.from(body).toString('base64'),
  };
}

console.log(JSON.stringify({ ready: true }));
readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const job = JSON.parse(line);
  console.log(JSON.stringify(
    job.provider === 'alipay' ? signAlipay(job) : signWechat(job)));
});
