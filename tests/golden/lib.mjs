// What the golden generators share: test keys, form encoding, captures and
// case folders. Node's own modules only. This is written from the providers'
// documents and on purpose shares nothing with the C code: two
// implementations that agree are the proof.
import { execFileSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

// --- keys ---------------------------------------------------------------

const pairs = new Map();

// A fresh RSA pair per name and run: nothing secret is ever committed.
export function keyPair(name, bits = 2048) {
	const id = `${name}/${bits}`;
	if (!pairs.has(id)) {
		pairs.set(id, crypto.generateKeyPairSync('rsa', { modulusLength: bits }));
	}
	return pairs.get(id);
}

export function spkiPem(key) {
	return key.export({ type: 'spki', format: 'pem' });
}

export function pkcs1Pem(key) {
	return key.export({ type: 'pkcs1', format: 'pem' });
}

export function spkiDer(key) {
	return key.export({ type: 'spki', format: 'der' });
}

export function pkcs1Der(key) {
	return key.export({ type: 'pkcs1', format: 'der' });
}

export function privatePem(key) {
	return key.export({ type: 'pkcs8', format: 'pem' });
}

// PEM with lines of any width; width 0: one long line.
export function pem(label, der, { width = 64, end = '\n' } = {}) {
	const base64 = der.toString('base64');
	const lines = width === 0 ? [base64] :
	    base64.match(new RegExp(`.{1,${width}}`, 'g'));
	return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, '']
	    .join(end);
}

// A self-signed certificate, by openssl. serial: hex digits. not_before and
// not_after ("20200101000000Z") need `openssl x509 -days`-less signing, so
// they go through `openssl ca`.
export function certificate(pair, { subject = '/C=CN/O=Test/CN=test',
	serial = '0123456789ABCDEF0123', notBefore = '20240101000000Z',
	notAfter = '20340101000000Z', issuer = null } = {}) {
	const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'pn-cert-'));
	const file = (name) => path.join(dir, name);
	const run = (...args) => execFileSync('openssl', args,
	    { stdio: ['ignore', 'pipe', 'pipe'], cwd: dir });
	try {
		fs.writeFileSync(file('key'), privatePem(pair.privateKey), { mode: 0o600 });
		fs.writeFileSync(file('index'), '');
		fs.writeFileSync(file('serial'), serial.length % 2 ? `0${serial}` : serial);
		fs.writeFileSync(file('conf'), [
			'[req]', 'distinguished_name=dn', 'prompt=no', '[dn]', 'CN=x',
			'[ca]', 'default_ca=c', '[c]', 'database=index', 'serial=serial',
			'new_certs_dir=.', 'default_md=sha256', 'policy=any',
			'unique_subject=no', 'email_in_dn=no', '[any]',
			'countryName=optional', 'organizationName=optional',
			'organizationalUnitName=optional', 'commonName=supplied', '',
		].join('\n'));
		run('req', '-new', '-utf8', '-config', 'conf', '-key', 'key', '-subj', subject,
		    '-out', 'csr');
		const sign = ['ca', '-batch', '-notext', '-utf8', '-config', 'conf', '-in', 'csr',
			'-out', 'crt', '-startdate', notBefore, '-enddate', notAfter];
		if (issuer === null) {
			run(...sign, '-selfsign', '-keyfile', 'key');
		} else {
			fs.writeFileSync(file('cakey'), privatePem(issuer.pair.privateKey),
			    { mode: 0o600 });
			fs.writeFileSync(file('cacert'), issuer.certificate);
			run(...sign, '-keyfile', 'cakey', '-cert', 'cacert');
		}
		const text = fs.readFileSync(file('crt'), 'utf8');
		return text.slice(text.indexOf('-----BEGIN'));
	} finally {
		fs.rmSync(dir, { recursive: true, force: true });
	}
}

export function certificateDer(text) {
	return Buffer.from(text.replace(/-----[^-]+-----/g, '').replace(/\s/g, ''), 'base64');
}

// --- forms --------------------------------------------------------------

export function bytes(value) {
	return Buffer.isBuffer(value) ? value : Buffer.from(String(value), 'utf8');
}

// Java's URLEncoder: "+" for a space, "*-_." raw, the rest %XX upper case.
export function urlencode(value, { lower = false, percent20 = false } = {}) {
	let out = '';
	for (const b of bytes(value)) {
		const c = String.fromCharCode(b);
		if (/[A-Za-z0-9*\-_.]/.test(c)) {
			out += c;
		} else if (c === ' ' && !percent20) {
			out += '+';
		} else {
			const hex = b.toString(16).padStart(2, '0');
			out += `%${lower ? hex : hex.toUpperCase()}`;
		}
	}
	return out;
}

// fields: array of [name, value], value a string or a Buffer.
export function form(fields, options) {
	return Buffer.from(fields.map(([name, value]) =>
	    `${urlencode(name, options)}=${urlencode(value, options)}`).join('&'));
}

// --- times --------------------------------------------------------------

// yyyy-MM-dd HH:mm:ss in Beijing of a Unix time in seconds.
export function beijing(seconds, fraction = '') {
	const iso = new Date((seconds + 8 * 3600) * 1000).toISOString();
	return `${iso.slice(0, 10)} ${iso.slice(11, 19)}${fraction}`;
}

// --- cases --------------------------------------------------------------

export function capture({ method = 'POST', target, headers, body }) {
	const names = Object.keys(headers).map((name) => name.toLowerCase());
	const lines = [`${method} ${target} HTTP/1.1`];
	for (const [name, value] of Object.entries(headers)) {
		lines.push(`${name}: ${value}`);
	}
	if (!names.includes('content-length')) {
		lines.push(`Content-Length: ${body.length}`);
	}
	return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), body]);
}

// One folder as ../shared/cases has them: request.http, paynotifyd.conf with
// its key files, expect.json. files: name -> text or Buffer.
export function writeCase(out, provider, name, { conf, files = {}, request, raw, expect }) {
	const dir = path.join(out, provider, name);
	if (fs.existsSync(dir)) {
		throw new Error(`case ${provider}/${name} is there twice`);
	}
	fs.mkdirSync(dir, { recursive: true });
	for (const [file, content] of Object.entries(files)) {
		fs.writeFileSync(path.join(dir, file), content, { mode: 0o600 });
	}
	fs.writeFileSync(path.join(dir, 'paynotifyd.conf'), conf, { mode: 0o600 });
	fs.writeFileSync(path.join(dir, 'request.http'), raw ?? capture(request));
	fs.writeFileSync(path.join(dir, 'expect.json'),
	    `${JSON.stringify({ provider, ...expect }, null, 1)}\n`);
}
