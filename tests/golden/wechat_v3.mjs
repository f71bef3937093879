// APIv3 up to the decrypted text: headers, window, keys, signature, bytes of
// the body, envelope, resource.
import { spkiPem } from './lib.mjs';
import { account, cert, certAccount, envelope, gcm, message, NOW, platform, platformNew, PUB_KEY_ID, publicKey,
	publicKeyAccount, rsaSign, SERIAL, SERIAL_EXPIRED, SERIAL_NEW, SERIAL_ZERO, stranger, V3_KEY, V3_KEY_OLD, v2Account,
	v3 } from './wechat_make.mjs';

const paid = {
	mchid: '1900000109',
	appid: 'wx8888888888888888',
	out_trade_no: 'GOLD20260101000001',
	transaction_id: '4200002026010100000000000001',
	trade_type: 'JSAPI',
	trade_state: 'SUCCESS',
	trade_state_desc: '支付成功',
	bank_type: 'CMC',
	attach: '',
	success_time: '2026-01-01T08:00:03+08:00',
	payer: { openid: 'oGoldenOpenid' },
	amount: { total: 100, payer_total: 90, currency: 'CNY', payer_currency: 'CNY' },
};
const event = {
	schema: 1,
	type: 'payment.succeeded',
	key: 'webhook:wechat:4200002026010100000000000001',
	provider: 'wechat',
	tenant: 'case',
	account: '1900000109',
	livemode: true,
	out_trade_no: 'GOLD20260101000001',
	transaction_id: '4200002026010100000000000001',
	amount: 100,
	order_amount: 100,
	currency: 'CNY',
	refund: null,
	occurred_at: '2026-01-01T00:00:03Z',
	seq: null,
	received_at: null,
};
const accepted = { verified: true, alarm: false, probe: false, events: [event] };

function headerCases(out) {
	const unverified = { verified: false };
	v3(out, 'header_names_lowercase', { plain: paid, ...accepted,
		headers: { 'Wechatpay-Nonce': undefined, 'Wechatpay-Serial': undefined,
			'wechatpay-nonce': 'q7XoPk3mZ0aT5vB9yC1dE8fG2hJ4kL6n', 'wechatpay-serial': SERIAL } });
	v3(out, 'header_names_other_case', { plain: paid, ...accepted,
		headers: { 'Wechatpay-Timestamp': undefined, 'Wechatpay-TimeStamp': String(NOW - 2) } });
	for (const header of ['Timestamp', 'Nonce', 'Serial', 'Signature']) {
		const name = `Wechatpay-${header}`;
		const lower = header.toLowerCase();
		v3(out, `missing_${lower}`, { plain: paid, headers: { [name]: undefined }, verdict: 'malformed', ...unverified });
		v3(out, `empty_${lower}`, { plain: paid, headers: { [name]: '' }, verdict: 'malformed', ...unverified });
		v3(out, `duplicate_${lower}`, { plain: paid, duplicate: name, verdict: 'malformed', ...unverified });
	}
	v3(out, 'duplicate_signature_type', { plain: paid, duplicate: 'Wechatpay-Signature-Type',
		verdict: 'malformed', ...unverified });
	v3(out, 'all_headers_stripped', { plain: paid, verdict: 'malformed', ...unverified,
		headers: { 'Wechatpay-Timestamp': undefined, 'Wechatpay-Nonce': undefined, 'Wechatpay-Serial': undefined,
			'Wechatpay-Signature': undefined, 'Wechatpay-Signature-Type': undefined } });
	v3(out, 'signature_type_absent', { plain: paid, ...accepted, headers: { 'Wechatpay-Signature-Type': undefined } });
	v3(out, 'signature_type_sm2', { plain: paid, verdict: 'unsupported', ...unverified,
		headers: { 'Wechatpay-Signature-Type': 'WECHATPAY2-SM2-WITH-SM3' } });
	v3(out, 'signature_type_unknown', { plain: paid, verdict: 'unsupported', ...unverified,
		headers: { 'Wechatpay-Signature-Type': 'none' } });
	v3(out, 'to_account_without_v3', { plain: paid, to: v2Account(), verdict: 'unsupported', ...unverified });
	v3(out, 'request_id_and_others_ignored', { plain: paid, ...accepted,
		headers: { 'Request-ID': '08F7A5B2', 'X-Forwarded-For': '203.0.113.9', Pragma: 'no-cache' } });
}

function windowCases(out) {
	const at = (name, age, verdict, over = {}) => v3(out, `timestamp_${name}`, { plain: paid, timestamp: String(NOW - age),
		...(verdict === 'accepted' ? accepted : { verdict, verified: false }), ...over });
	at('age_299', 299, 'accepted');
	at('age_300_boundary', 300, 'accepted');
	at('age_301_stale', 301, 'stale');
	at('future_299', -299, 'accepted');
	at('future_300_boundary', -300, 'accepted');
	at('future_301', -301, 'stale');
	at('a_day_old', 86400, 'stale');
	at('wide_window_600', 600, 'accepted', { to: certAccount({ more: ['timestamp_tolerance = 10m'] }) });
	at('wide_window_601', 601, 'stale', { to: certAccount({ more: ['timestamp_tolerance = 10m'] }) });
	const as = (name, timestamp, verdict) => v3(out, `timestamp_${name}`, { plain: paid, timestamp, verdict, verified: false });
	as('milliseconds', String((NOW - 2) * 1000), 'malformed');
	as('plus_sign', `+${NOW - 2}`, 'malformed');
	as('minus_sign', `-${NOW - 2}`, 'malformed');
	as('not_a_number', 'now', 'malformed');
	as('hex', '0x69559585', 'malformed');
	as('fraction', `${NOW - 2}.5`, 'malformed');
	as('two_numbers', `${NOW - 2} ${NOW - 2}`, 'malformed');
	as('twelve_digits', `00${NOW - 2}`, 'malformed');
	as('zero', '0', 'stale');
	as('largest', '99999999999', 'stale');
	// The header's own text was signed, leading zero and all.
	v3(out, 'timestamp_leading_zero', { plain: paid, timestamp: `0${NOW - 2}`, ...accepted });
	v3(out, 'timestamp_leading_zero_signed_without', { plain: paid, timestamp: `0${NOW - 2}`, verdict: 'bad_signature',
		signed: (timestamp, nonce, body) => message(timestamp.slice(1), nonce, body) });
	v3(out, 'stale_before_unknown_key', { plain: paid, timestamp: String(NOW - 400), serial: 'FF', verdict: 'stale' });
	v3(out, 'retry_old_create_time_fresh_header', { plain: paid, ...accepted,
		env: { create_time: '2025-12-31T20:00:04+08:00' } });
}

function keyCases(out) {
	const both = { more: ['platform_cert = new.pem'], files: { 'new.pem': cert(platformNew, SERIAL_NEW) } };
	v3(out, 'public_key_mode', { plain: paid, serial: PUB_KEY_ID, pair: publicKey, to: publicKeyAccount(), ...accepted });
	const mixed = publicKeyAccount({ more: ['platform_cert = cert.pem'], files: { 'cert.pem': cert(platform, SERIAL) } });
	v3(out, 'migration_pubkey_while_cert_still_used', { plain: paid, to: mixed, ...accepted });
	v3(out, 'migration_pubkey_used', { plain: paid, serial: PUB_KEY_ID, pair: publicKey, to: mixed, ...accepted });
	v3(out, 'migration_pubkey_id_signed_by_cert_key', { plain: paid, serial: PUB_KEY_ID, to: mixed,
		verdict: 'bad_signature', verified: false });
	v3(out, 'rotation_old_cert', { plain: paid, to: certAccount(both), ...accepted });
	v3(out, 'rotation_new_cert', { plain: paid, serial: SERIAL_NEW, pair: platformNew, to: certAccount(both), ...accepted });
	v3(out, 'wrong_serial_known_other_cert', { plain: paid, serial: SERIAL_NEW, to: certAccount(both),
		verdict: 'bad_signature' });
	v3(out, 'rotation_new_cert_not_installed', { plain: paid, serial: SERIAL_NEW, pair: platformNew, verdict: 'unknown_key' });
	const zero = account({
		lines: ['mchid = 1900000109', 'api_v3_key_file = v3.key', 'platform_cert = zero.pem'],
		files: { 'v3.key': V3_KEY, 'zero.pem': cert(platform, SERIAL_ZERO) },
	});
	v3(out, 'serial_with_leading_zero', { plain: paid, serial: SERIAL_ZERO, to: zero, ...accepted });
	v3(out, 'serial_leading_zero_lost', { plain: paid, serial: SERIAL_ZERO.slice(1), to: zero, verdict: 'unknown_key' });
	v3(out, 'serial_lower_case_hex', { plain: paid, serial: SERIAL.toLowerCase(), verdict: 'unknown_key' });
	v3(out, 'serial_unknown', { plain: paid, serial: '1'.repeat(40), verdict: 'unknown_key' });
	v3(out, 'serial_unknown_public_key_id', { plain: paid, serial: 'PUB_KEY_ID_0000000000', verdict: 'unknown_key' });
	v3(out, 'serial_digits_of_public_key_id', { plain: paid, serial: PUB_KEY_ID.slice(11), pair: publicKey,
		to: publicKeyAccount(), verdict: 'unknown_key' });
	v3(out, 'serial_path_traversal', { plain: paid, serial: '../../../etc/passwd', verdict: 'unknown_key' });
	v3(out, 'serial_not_ascii', { plain: paid, serial: '\xd6\xa7\xff"\\', verdict: 'unknown_key' });
	v3(out, 'serial_very_long', { plain: paid, serial: 'A'.repeat(4000), verdict: 'unknown_key' });
	v3(out, 'serial_prefix_of_known', { plain: paid, serial: SERIAL.slice(0, 39), verdict: 'unknown_key' });
	const expired = (notAfter) => account({
		lines: ['mchid = 1900000109', 'api_v3_key_file = v3.key', 'platform_cert = old.pem'],
		files: { 'v3.key': V3_KEY, 'old.pem': cert(platform, SERIAL_EXPIRED, { notBefore: '20201231000000Z', notAfter }) },
	});
	v3(out, 'expired_platform_certificate', { plain: paid, serial: SERIAL_EXPIRED, to: expired('20251231235959Z'),
		verdict: 'unknown_key', verified: false });
	v3(out, 'platform_certificate_in_its_last_second', { plain: paid, serial: SERIAL_EXPIRED,
		to: expired('20260101000005Z'), ...accepted });
	// A public key has no end, even in the wrapping of a certificate that has.
	v3(out, 'public_key_in_expired_certificate', { plain: paid, serial: PUB_KEY_ID, to: account({
		lines: ['mchid = 1900000109', 'api_v3_key_file = v3.key', `public_key = ${PUB_KEY_ID}:old.pem`],
		files: { 'v3.key': V3_KEY, 'old.pem': cert(platform, SERIAL_EXPIRED,
		    { notBefore: '20201231000000Z', notAfter: '20251231235959Z' }) },
	}), ...accepted });
	v3(out, 'same_certificate_twice', { plain: paid, ...accepted,
		to: certAccount({ more: ['platform_cert = again.pem'], files: { 'again.pem': cert(platform, SERIAL) } }) });
	v3(out, 'public_key_bare_base64', { plain: paid, serial: PUB_KEY_ID, pair: publicKey, ...accepted,
		to: publicKeyAccount({ files: { 'pub.pem': spkiPem(publicKey.publicKey).replace(/-----[^-]+-----|\s/g, '') } }) });
}

function signatureCases(out) {
	const bad = { verdict: 'bad_signature', verified: false, probe: false };
	const good = rsaSign(platform, Buffer.from('something else'));
	v3(out, 'signature_all_zero', { plain: paid, signature: Buffer.alloc(256).toString('base64'), ...bad });
	v3(out, 'signature_of_another_message', { plain: paid, signature: good, ...bad });
	v3(out, 'signature_truncated', { plain: paid, signature: Buffer.from(good, 'base64').subarray(0, 255).toString('base64'), ...bad });
	v3(out, 'signature_one_byte_more', { plain: paid,
		signature: Buffer.concat([Buffer.from(good, 'base64'), Buffer.alloc(1)]).toString('base64'), ...bad });
	v3(out, 'signature_not_base64', { plain: paid, signature: '*not base64*', ...bad });
	v3(out, 'signature_unpadded', { plain: paid, signature: good.replace(/=+$/, ''), ...bad });
	v3(out, 'signature_one_letter', { plain: paid, signature: 'A', ...bad });
	v3(out, 'signature_very_long', { plain: paid, signature: 'A'.repeat(8192), ...bad });
	const signedBy = (name, make, over = {}) => v3(out, name, { plain: paid, ...bad, ...over,
		headers: { 'Wechatpay-Signature': make(message(String(NOW - 2), 'q7XoPk3mZ0aT5vB9yC1dE8fG2hJ4kL6n',
		    Buffer.from(JSON.stringify(envelope(paid))))) } });
	signedBy('signature_sha1', (m) => rsaSign(platform, m, { hash: 'sha1' }));
	signedBy('signature_sha512', (m) => rsaSign(platform, m, { hash: 'sha512' }));
	signedBy('signature_pss_padding', (m) => rsaSign(platform, m, { pss: true }));
	signedBy('signature_base64url', (m) => rsaSign(platform, m).replace(/\+/g, '-').replace(/\//g, '_')
	    .replace(/=+$/, ''));
	signedBy('signed_by_merchant_key', (m) => rsaSign(stranger, m));
	signedBy('signtest_prefix_plus_whole_valid_signature', (m) => `WECHATPAY/SIGNTEST/${rsaSign(platform, m)}`,
	    { probe: true });
	v3(out, 'signature_without_final_lf', { plain: paid, ...bad,
		signed: (timestamp, nonce, body) => message(timestamp, nonce, body).subarray(0, -1) });
	v3(out, 'signature_crlf_lines', { plain: paid, ...bad,
		signed: (timestamp, nonce, body) => Buffer.from(`${timestamp}\r\n${nonce}\r\n${body}\r\n`) });
	v3(out, 'signature_nonce_before_timestamp', { plain: paid, ...bad,
		signed: (timestamp, nonce, body) => message(nonce, timestamp, body) });
	v3(out, 'tampered_body', { plain: paid, ...bad,
		relayed: (body) => Buffer.from(body.toString().replace('支付成功', '支付失败')) });
	v3(out, 'tampered_header_nonce', { plain: paid, ...bad, headers: { 'Wechatpay-Nonce': 'another' } });
	v3(out, 'tampered_header_timestamp', { plain: paid, ...bad, headers: { 'Wechatpay-Timestamp': String(NOW - 1) } });
	const probe = `WECHATPAY/SIGNTEST/${'2sWf'.repeat(84)}`;
	v3(out, 'signtest_probe', { plain: paid, signature: probe, verdict: 'bad_signature', verified: false, probe: true });
	v3(out, 'signtest_probe_with_unknown_serial', { plain: paid, signature: probe, serial: '2'.repeat(40),
		verdict: 'unknown_key', verified: false, probe: true });
	v3(out, 'signtest_probe_stale', { plain: paid, signature: probe, timestamp: String(NOW - 1000), verdict: 'stale' });
	v3(out, 'signtest_prefix_of_right_length', { plain: paid, verdict: 'bad_signature', probe: true,
		signature: `WECHATPAY/SIGNTEST/${'A'.repeat(323)}==` });
}

function byteCases(out) {
	const pretty = (text) => `${JSON.stringify(JSON.parse(text), null, 2)}\n`;
	const bad = { verdict: 'bad_signature', verified: false };
	const kept = { verdict: 'malformed', verified: true, events: [] };
	v3(out, 'body_pretty_printed_trailing_newline', { plain: paid, written: pretty, ...accepted });
	v3(out, 'body_crlf', { plain: paid, written: (text) => pretty(text).replace(/\n/g, '\r\n'), ...accepted });
	v3(out, 'body_escaped_slashes', { plain: paid, written: (text) => text.replace(/\//g, '\\/'), ...accepted });
	v3(out, 'body_unicode_escapes', { plain: paid, ...accepted, written: (text) => text.replace(/[^\x00-\x7f]/g,
	    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`) });
	v3(out, 'body_chinese_and_emoji_raw_utf8', { plain: { ...paid, attach: '红包🧧' }, env: { summary: '支付成功🎉' },
		...accepted, events: [{ ...event, payload: { attach: '红包🧧' } }] });
	v3(out, 'body_nul_escape_in_summary', { plain: paid, env: { summary: 'a\u0000b' }, ...accepted });
	v3(out, 'body_unknown_members_any_order', { plain: paid, ...accepted, written: (text) => {
		const { resource, ...rest } = JSON.parse(text);
		return JSON.stringify({ future: { a: [1, null, true, 1.5] }, resource, ...rest });
	} });
	v3(out, 'body_without_summary', { plain: paid, env: { summary: undefined, resource_type: undefined }, ...accepted });
	v3(out, 'body_without_id', { plain: paid, env: { id: undefined }, ...accepted });
	v3(out, 'body_without_event_type', { plain: paid, env: { event_type: undefined }, ...accepted });
	v3(out, 'body_reserialised_sorted_keys', { plain: paid, ...bad, relayed: (body) => {
		const value = JSON.parse(body);
		return Buffer.from(JSON.stringify(Object.fromEntries(Object.entries(value).sort())));
	} });
	v3(out, 'body_whitespace_lost', { plain: paid, written: pretty, ...bad,
		relayed: (body) => Buffer.from(JSON.stringify(JSON.parse(body))) });
	v3(out, 'body_trailing_newline_stripped', { plain: paid, written: pretty, ...bad,
		relayed: (body) => body.subarray(0, -1) });
	v3(out, 'body_newlines_removed_by_line_reader', { plain: paid, written: pretty, ...bad,
		relayed: (body) => Buffer.from(body.toString().replace(/\n/g, '')) });
	v3(out, 'body_charset_mangled', { plain: paid, ...bad,
		relayed: (body) => Buffer.from(body.toString('latin1'), 'utf8') });
	v3(out, 'body_consumed_before', { plain: paid, ...bad, relayed: () => Buffer.alloc(0) });
	v3(out, 'body_cut', { plain: paid, ...bad, relayed: (body) => body.subarray(0, 200) });
	v3(out, 'body_with_bom', { plain: paid, written: (text) => `\ufeff${text}`, ...kept });
	v3(out, 'body_bom_added_by_relay', { plain: paid, ...bad,
		relayed: (body) => Buffer.concat([Buffer.from('\ufeff'), body]) });
	v3(out, 'body_empty', { body: '', ...kept });
	v3(out, 'body_space', { body: ' ', ...kept });
	v3(out, 'body_not_json', { body: 'trade_status=TRADE_SUCCESS', ...kept });
	v3(out, 'body_not_object', { body: '["TRANSACTION.SUCCESS"]', ...kept });
	v3(out, 'body_string', { body: '"x"', ...kept });
	v3(out, 'body_null', { body: 'null', ...kept });
	v3(out, 'body_trailing_garbage', { plain: paid, written: (text) => `${text}x`, ...kept });
	v3(out, 'body_two_values', { plain: paid, written: (text) => text + text, ...kept });
	v3(out, 'body_duplicate_name', { plain: paid, written: (text) => text.replace('{', '{"id":"EV-other",'), ...kept });
	v3(out, 'body_lone_surrogate', { plain: paid, written: (text) => text.replace('支付成功', '\\ud800'), ...kept });
	v3(out, 'body_invalid_utf8', { plain: paid, ...kept,
		written: (text) => Buffer.from(text.replace('支付成功', '\xff\xfe'), 'latin1') });
	v3(out, 'body_deep_nesting', { plain: paid, ...kept,
		written: (text) => text.replace('{', `{"deep":${'['.repeat(20000)}${']'.repeat(20000)},`) });
	v3(out, 'body_integer_above_int64', { plain: paid, written: (text) => text.replace('{', '{"n":9223372036854775808,'),
		...kept });
	v3(out, 'body_id_is_number', { plain: paid, env: { id: 17 }, ...kept });
	v3(out, 'body_id_too_long', { plain: paid, env: { id: 'E'.repeat(129) }, ...kept });
	v3(out, 'body_id_with_nul', { plain: paid, env: { id: 'EV\u0000' }, ...kept });
	v3(out, 'body_id_longest', { plain: paid, env: { id: 'E'.repeat(128) }, ...accepted });
}

function resourceCases(out) {
	const kept = { verdict: 'malformed', verified: true, events: [] };
	const locked = { verdict: 'undecryptable', verified: true, events: [] };
	v3(out, 'aad_empty', { plain: paid, env: { aad: '' }, ...accepted });
	v3(out, 'aad_null', { plain: paid, env: { aad: null }, ...accepted });
	v3(out, 'aad_absent', { plain: paid, env: { aad: '', resource: { associated_data: undefined } }, ...accepted });
	v3(out, 'aad_of_sixteen_bytes', { plain: paid, env: { aad: 'cross_border_pay' }, ...accepted });
	v3(out, 'aad_chinese', { plain: paid, env: { aad: '支付' }, ...accepted });
	v3(out, 'aad_number', { plain: paid, env: { resource: { associated_data: 1 } }, ...kept });
	v3(out, 'body_resource_missing', { plain: paid, env: { resource: {} }, ...kept,
		written: (text) => JSON.stringify({ ...JSON.parse(text), resource: undefined }) });
	for (const [name, value] of [['null', null], ['is_string', 'x'], ['is_array', []], ['is_number', 1]]) {
		v3(out, `body_resource_${name}`, { plain: paid, ...kept,
			written: (text) => JSON.stringify({ ...JSON.parse(text), resource: value }) });
	}
	v3(out, 'body_resource_empty', { body: '{"id":"EV-1","event_type":"TRANSACTION.SUCCESS","resource":{}}', ...kept });
	v3(out, 'algorithm_sm4_under_rsa', { plain: paid, env: { resource: { algorithm: 'AEAD_SM4_GCM' } },
		verdict: 'unsupported', verified: true, events: [] });
	v3(out, 'algorithm_absent', { plain: paid, env: { resource: { algorithm: undefined } }, ...kept });
	v3(out, 'algorithm_lower_case', { plain: paid, env: { resource: { algorithm: 'aead_aes_256_gcm' } },
		verdict: 'unsupported', verified: true, events: [] });
	v3(out, 'resource_nonce_empty', { plain: paid, env: { resource: { nonce: '' } }, ...kept });
	v3(out, 'resource_nonce_absent', { plain: paid, env: { resource: { nonce: undefined } }, ...kept });
	v3(out, 'resource_nonce_11_bytes', { plain: paid, env: { nonce: 'abcdefghijk' }, ...kept });
	v3(out, 'resource_nonce_13_bytes', { plain: paid, env: { nonce: 'abcdefghijklm' }, ...kept });
	v3(out, 'resource_nonce_number', { plain: paid, env: { resource: { nonce: 123456789012 } }, ...kept });
	v3(out, 'resource_ciphertext_absent', { plain: paid, env: { resource: { ciphertext: undefined } }, ...kept });
	v3(out, 'resource_ciphertext_null', { plain: paid, env: { resource: { ciphertext: null } }, ...kept });
	const cipher = gcm(JSON.stringify(paid));
	const changed = (name, bytes, over = {}) => v3(out, `bad_decrypt_${name}`, { plain: paid,
		env: { resource: { ciphertext: bytes.toString('base64'), ...over } }, ...locked });
	const flip = Buffer.from(cipher);
	flip[10] ^= 1;
	changed('flipped_bit', flip);
	const tag = Buffer.from(cipher);
	tag[tag.length - 1] ^= 1;
	changed('flipped_tag', tag);
	changed('wrong_aad', cipher, { associated_data: 'refund' });
	changed('aad_lost', cipher, { associated_data: null });
	changed('wrong_nonce', cipher, { nonce: 'lkjihgfedcba' });
	changed('tag_removed', cipher.subarray(0, -16));
	changed('one_byte_lost', cipher.subarray(0, -1));
	changed('shorter_than_tag', cipher.subarray(0, 3));
	changed('of_tag_length', cipher.subarray(0, 16));
	changed('empty', Buffer.alloc(0));
	v3(out, 'bad_decrypt_not_base64', { plain: paid, env: { resource: { ciphertext: '%%%not*base64%%%' } }, ...locked });
	v3(out, 'bad_decrypt_base64_with_newlines', { plain: paid, ...locked,
		env: { resource: { ciphertext: cipher.toString('base64').replace(/(.{76})/g, '$1\n') } } });
	v3(out, 'bad_decrypt_key_rotated', { plain: paid, env: { key: V3_KEY_OLD }, ...locked });
	const twoKeys = { more: ['api_v3_key_file = old.key'], files: { 'old.key': V3_KEY_OLD } };
	v3(out, 'two_api_keys_old_used', { plain: paid, env: { key: V3_KEY_OLD }, to: certAccount(twoKeys), ...accepted });
	v3(out, 'two_api_keys_new_used', { plain: paid, to: certAccount(twoKeys), ...accepted });
	v3(out, 'api_key_file_with_newline', { plain: paid, to: certAccount({ files: { 'v3.key': `${V3_KEY}\n` } }), ...accepted });
}

export function makeV3(out) {
	v3(out, 'transaction_success', { plain: paid, ...accepted,
		events: [{ ...event, payload: { bank_type: 'CMC', trade_type: 'JSAPI' } }] });
	headerCases(out);
	windowCases(out);
	keyCases(out);
	signatureCases(out);
	byteCases(out);
	resourceCases(out);
}
