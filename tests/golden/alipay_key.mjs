// Every form in which merchants have Alipay's public key, and several keys.
import { alipayKey, payment } from './alipay_message.mjs';
import { certificate, certificateDer, keyPair, pem, pkcs1Der, pkcs1Pem, spkiDer, spkiPem }
	from './lib.mjs';

export function keyCases(add) {
	const pair = alipayKey();
	const key = pair.publicKey;
	const base64 = spkiDer(key).toString('base64');
	const ca = keyPair('alipay-ca');
	const issuer = { pair: ca, certificate: certificate(ca, { subject: '/C=CN/CN=Test CA' }) };
	const subject = '/C=CN/O=支付宝/CN=支付宝(中国)网络技术有限公司-2088000000000001';
	const leaf = certificate(pair, { subject, issuer });
	const expired = certificate(pair, { subject, notBefore: '20200514000000Z',
		notAfter: '20220514000000Z' });
	const future = certificate(pair, { subject, notBefore: '20330514000000Z',
		notAfter: '20350514000000Z' });
	const crlf = (text) => text.replace(/\n/g, '\r\n');
	const forms = {
		spki_pem: spkiPem(key),
		pem_crlf: crlf(spkiPem(key)),
		pem_bom: `\ufeff${spkiPem(key)}`,
		pem_one_line_body: pem('PUBLIC KEY', spkiDer(key), { width: 0 }),
		pem_wrapped_at_76: pem('PUBLIC KEY', spkiDer(key), { width: 76 }),
		pem_no_final_newline: spkiPem(key).trimEnd(),
		pem_text_before: `Alipay public key of app 1\n\n${spkiPem(key)}`,
		raw_base64_one_line: base64,
		raw_base64_newline: `${base64}\n`,
		raw_base64_bom: `\ufeff${base64}`,
		raw_base64_crlf: crlf(`${base64.replace(/(.{64})/g, '$1\n')}\n`),
		raw_base64_wrapped_with_spaces: base64.replace(/(.{76})/g, '$1 \n'),
		pkcs1_pem: pkcs1Pem(key),
		pkcs1_raw_base64: pkcs1Der(key).toString('base64'),
		spki_in_pkcs1_header: pem('RSA PUBLIC KEY', spkiDer(key)),
		pkcs1_in_spki_header: pem('PUBLIC KEY', pkcs1Der(key)),
		base64_of_pem: Buffer.from(spkiPem(key)).toString('base64'),
		x509_cert_pem: leaf,
		x509_cert_crlf: crlf(leaf),
		x509_cert_bom: `\ufeff${leaf}`,
		x509_cert_base64_der: certificateDer(leaf).toString('base64'),
		x509_cert_base64_of_pem: Buffer.from(leaf).toString('base64'),
		x509_cert_leaf_then_issuer: leaf + issuer.certificate,
		x509_cert_expired: expired,
		x509_cert_not_yet_valid: future,
	};
	for (const [name, text] of Object.entries(forms)) {
		add(`keyformat_${name}`, { files: { alipay_key: text },
			note: 'a key is recognised by content, not by label' });
	}
	add('keyformat_x509_issuer_then_leaf', {
		files: { alipay_key: issuer.certificate + leaf }, verdict: 'bad_signature',
		note: 'of several certificates the first counts' });

	const small = keyPair('alipay-small', 1024);
	add('key_1024_rsa', { files: { alipay_key: spkiPem(small.publicKey) }, signType: 'RSA',
		sign: { key: small, hash: 'RSA-SHA1' } });
	const large = keyPair('alipay-large', 4096);
	add('key_4096_rsa2', { files: { alipay_key: spkiPem(large.publicKey) },
		sign: { key: large } });
	const next = keyPair('alipay-next');
	const two = { files: { next_key: spkiPem(next.publicKey) } };
	add('rotation_old_key_second', { ...two, keys: ['next_key', 'alipay_key'] });
	add('rotation_new_key_second', { ...two, keys: ['alipay_key', 'next_key'],
		sign: { key: next } });
	add('rotation_other_length_first', { keys: ['small_key', 'alipay_key'],
		files: { small_key: spkiPem(small.publicKey) },
		note: 'a signature of 2048 bits does not upset a key of 1024' });
	add('rotation_certificate_and_key', { keys: ['cert', 'alipay_key'],
		files: { cert: certificate(next, { subject: '/CN=next' }) },
		events: [payment()] });
	add('rotation_no_key_verifies', { ...two, keys: ['next_key'],
		verdict: 'bad_signature' });
	add('key_merchants_own', { files: { alipay_key: spkiPem(keyPair('app').publicKey) },
		verdict: 'bad_signature', note: "the application's key, not Alipay's" });
}
