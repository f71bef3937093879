// How the WeChat Pay cases are made: signing and encrypting for both dialects,
// one function a dialect. A case names only what is unusual about it.
import crypto from 'node:crypto';
import { certificate, keyPair, spkiPem, writeCase } from './lib.mjs';

export const NOW = 1767225605; // 2026-01-01T08:00:05+08:00
export const MCHID = '1900000109';
export const APPID = 'wx8888888888888888';
export const V3_KEY = 'golden-api-v3-key-of-32-bytes-01';
export const V3_KEY_OLD = 'golden-api-v3-key-of-32-bytes-00';
export const V2_KEY = 'golden0api0v2key0of0032bytes0001';

export const SERIAL = '5157F09EFDC096DE15EBE81A47057A7200000001';
export const SERIAL_NEW = '5157F09EFDC096DE15EBE81A47057A7200000002';
export const SERIAL_ZERO = '0A57F09EFDC096DE15EBE81A47057A7200000003';
export const SERIAL_EXPIRED = '5157F09EFDC096DE15EBE81A47057A7200000004';
export const PUB_KEY_ID = 'PUB_KEY_ID_0119000001092026010100000000000001';

export const platform = keyPair('wechat-platform');
export const platformNew = keyPair('wechat-platform-new');
export const publicKey = keyPair('wechat-public-key');
export const stranger = keyPair('wechat-stranger');

const made = new Map();
export function cert(pair, serial, dates = {}) {
	const id = serial + JSON.stringify(dates);
	if (!made.has(id)) {
		made.set(id, certificate(pair, { serial, subject: '/C=CN/O=Tenpay.com/CN=Test', ...dates }));
	}
	return made.get(id);
}

export function account({ lines = [], files = {} }) {
	return { conf: ['[wechat case]', ...lines, ''].join('\n'), files };
}

// The usual APIv3 account: one platform certificate.
export function certAccount({ mchid = MCHID, more = [], files = {} } = {}) {
	return account({
		lines: [`mchid = ${mchid}`, 'api_v3_key_file = v3.key', 'platform_cert = cert.pem', ...more],
		files: { 'v3.key': V3_KEY, 'cert.pem': cert(platform, SERIAL), ...files },
	});
}

export function publicKeyAccount({ more = [], files = {} } = {}) {
	return account({
		lines: [`mchid = ${MCHID}`, 'api_v3_key_file = v3.key', `public_key = ${PUB_KEY_ID}:pub.pem`, ...more],
		files: { 'v3.key': V3_KEY, 'pub.pem': spkiPem(publicKey.publicKey), ...files },
	});
}

export function v2Account({ mchid = MCHID, signType = 'MD5', more = [], files = {} } = {}) {
	return account({
		lines: [`mchid = ${mchid}`, 'api_v2_key_file = v2.key', `v2_sign_type = ${signType}`, ...more],
		files: { 'v2.key': V2_KEY, ...files },
	});
}

// --- APIv3 ---------------------------------------------------------------

export function rsaSign(pair, message, { hash = 'sha256', pss = false } = {}) {
	const padding = pss ? crypto.constants.RSA_PKCS1_PSS_PADDING : crypto.constants.RSA_PKCS1_PADDING;
	return crypto.sign(hash, message, { key: pair.privateKey, padding }).toString('base64');
}

export function gcm(plain, { key = V3_KEY, nonce = 'abcdefghijkl', aad = 'transaction' } = {}) {
	const cipher = crypto.createCipheriv('aes-256-gcm', Buffer.from(key), Buffer.from(nonce));
	cipher.setAAD(Buffer.from(aad ?? ''));
	return Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

export function message(timestamp, nonce, body) {
	return Buffer.concat([Buffer.from(`${timestamp}\n${nonce}\n`), body, Buffer.from('\n')]);
}

// The envelope in the order of real ones. undefined members vanish.
export function envelope(plain, { aad = 'transaction', type = 'TRANSACTION.SUCCESS',
	key = V3_KEY, nonce = 'abcdefghijkl', resource = {}, ...over } = {}) {
	const text = typeof plain === 'string' || Buffer.isBuffer(plain) ? plain : JSON.stringify(plain);
	return {
		id: 'EV-2026010108000500001',
		create_time: '2026-01-01T08:00:04+08:00',
		resource_type: 'encrypt-resource',
		event_type: type,
		summary: '支付成功',
		resource: {
			original_type: 'transaction',
			algorithm: 'AEAD_AES_256_GCM',
			ciphertext: gcm(text, { key, nonce, aad }).toString('base64'),
			associated_data: aad,
			nonce,
			...resource,
		},
		...over,
	};
}

const refused = (verdict) => verdict !== 'accepted';

// expect: { verdict | verdicts, events, verified, alarm, probe }
function expectation({ at = NOW, verdict = 'accepted', verdicts = [verdict], events, ...flags }) {
	const accept = !verdicts.every(refused);
	return { tenant: 'case', at, accept, verdicts, ...(events === undefined ? {} : { events }), ...flags };
}

// One APIv3 case. plain: what is encrypted; env: options of envelope(); body:
// the whole body instead; written: the JSON text before it is signed;
// relayed: what arrives of it; headers: changes (undefined removes).
export function v3(out, name, { plain, env = {}, body, written = (text) => text, relayed = (bytes) => bytes,
	headers = {}, timestamp = String(NOW - 2), nonce = 'q7XoPk3mZ0aT5vB9yC1dE8fG2hJ4kL6n',
	serial = SERIAL, pair = platform, signature, signed, duplicate, to = certAccount(), ...expect }) {
	const text = written(body === undefined ? JSON.stringify(envelope(plain, env)) : body);
	const bytes = Buffer.isBuffer(text) ? text : Buffer.from(text, 'utf8');
	const arrived = relayed(bytes);
	const all = {
		Host: 'pay.example.test',
		'User-Agent': 'Mozilla/4.0',
		'Content-Type': 'application/json',
		'Wechatpay-Nonce': nonce,
		'Wechatpay-Timestamp': timestamp,
		'Wechatpay-Serial': serial,
		'Wechatpay-Signature': signature ?? rsaSign(pair, signed ? signed(timestamp, nonce, bytes) :
		    message(timestamp, nonce, bytes)),
		'Wechatpay-Signature-Type': 'WECHATPAY2-SHA256-RSA2048',
		...headers,
	};
	const list = Object.entries(all).filter(([, value]) => value !== undefined);
	const lines = list.map(([header, value]) => `${header}: ${value}`);
	if (duplicate !== undefined) {
		lines.push(`${duplicate}: ${all[duplicate]}`);
	}
	lines.push(`Content-Length: ${arrived.length}`);
	writeCase(out, 'wechat', `v3_${name}`, {
		...to,
		raw: Buffer.concat([
			Buffer.from(['POST /notify/wechat/case HTTP/1.1', ...lines, '', ''].join('\r\n'), 'latin1'), arrived]),
		expect: expectation(expect),
	});
}

// --- APIv2 ---------------------------------------------------------------

const cdata = (value) => `<![CDATA[${value}]]>`;
export function xml(fields, root = 'xml', write = cdata) {
	return `<${root}>${fields.map(([name, value]) =>
	    `<${name}>${write(value, name)}</${name}>`).join('')}</${root}>`;
}

// fields: [name, value] as they are after unescaping.
export function v2Sign(fields, { key = V2_KEY, type = 'MD5' } = {}) {
	const text = fields.filter(([name, value]) => name !== 'sign' && value !== '')
	    .map(([name, value]) => [Buffer.from(name), `${name}=${value}`])
	    .sort(([a], [b]) => Buffer.compare(a, b)).map(([, pair]) => `${pair}&`).join('');
	const hash = type === 'MD5' ? crypto.createHash('md5') : crypto.createHmac('sha256', key);
	return hash.update(`${text}key=${key}`, 'utf8').digest('hex').toUpperCase();
}

export function reqInfoKey(key) {
	return crypto.createHash('md5').update(key).digest('hex');
}

// padded: bytes that are a multiple of 16 already.
export function ecb(plain, { key = V2_KEY, padded = false } = {}) {
	const cipher = crypto.createCipheriv('aes-256-ecb', reqInfoKey(key), null);
	cipher.setAutoPadding(!padded);
	return Buffer.concat([cipher.update(plain), cipher.final()]);
}

export function v2(out, name, { body, to = v2Account(), headers = {}, ...expect }) {
	const bytes = Buffer.isBuffer(body) ? body : Buffer.from(body, 'utf8');
	writeCase(out, 'wechat', `v2_${name}`, {
		...to,
		request: {
			target: '/notify/wechat/case',
			headers: { Host: 'pay.example.test', 'Content-Type': 'text/xml', ...headers },
			body: bytes,
		},
		expect: expectation(expect),
	});
}
