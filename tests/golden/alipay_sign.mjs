// The string that is signed, the rules, the algorithm, the text of `sign`.
import crypto from 'node:crypto';
import { agreement, alipayKey, canonical, fund, other, paid, payment, service, signature }
	from './alipay_message.mjs';
import { keyPair, spkiPem } from './lib.mjs';

function ruleCases(add) {
	const served = { fields: service(), events: [other('servicemarket_order_notify')] };
	add('v1_trade', {});
	add('v2_trade', { sign: { v2: true }, verdict: 'bad_signature',
		note: 'trade notifications know rule V1 only' });
	add('v1_servicemarket', served);
	add('v2_servicemarket', { ...served, sign: { v2: true } });
	add('v2_msg_method', { fields: fund(), sign: { v2: true },
		events: [other('fund.trans.order.changed')] });
	add('v2_without_sign_type', { ...served, fields: service({ sign_type: undefined }) });
	add('v2_sign_type_changed', { fields: service(), sign: { v2: true },
		wire: (pairs) => pairs.map(([n, v]) => [n, n === 'sign_type' ? 'RSA' : v]),
		verdict: 'bad_signature', note: 'under V2 sign_type is signed' });
	const empty = { body: '', voucher_detail_list: '' };
	add('empty_value_kept', { fields: paid(empty) });
	add('empty_value_dropped', { fields: paid(empty), sign: { drop: true } });
	add('empty_value_half_kept', { fields: paid({ body: '' }),
		wire: (pairs) => [...pairs, ['voucher_detail_list', '']],
		verdict: 'bad_signature', note: 'all of them or none' });
	add('empty_value_added', { wire: (pairs) => [...pairs, ['body', '']],
		note: 'indistinguishable from a signer that drops empties, and harmless: an ' +
		    'empty value counts as absent' });
	add('empty_value_v2_kept', { ...served, fields: service({ order_ticket: '' }),
		sign: { v2: true } });
	add('empty_value_v2_dropped', { ...served, fields: service({ order_ticket: '' }),
		sign: { v2: true, drop: true } });
	add('blank_value_is_not_empty', { fields: paid({ body: ' ' }) });
	add('blank_value_dropped', { fields: paid({ body: ' ' }),
		sign: null, verdict: 'malformed' });
	add('blank_value_trimmed_by_signer', { fields: paid({ body: ' ',
		sign: signature(paid({ body: undefined })) }), verdict: 'bad_signature' });
	add('sign_scene_and_sign_time_are_signed', { fields: agreement(),
		events: [other('dut_user_sign')] });
	add('sign_scene_changed', { fields: agreement(), verdict: 'bad_signature',
		wire: (pairs) => pairs.map(([n, v]) => [n, n === 'sign_scene' ? 'X' : v]) });
}

function algorithmCases(add) {
	add('sign_type_absent', { fields: paid({ sign_type: undefined }) });
	add('sign_type_empty', { fields: paid({ sign_type: '' }) });
	add('sign_type_nonsense', { fields: paid({ sign_type: 'none' }),
		note: 'under V1 it is not signed and not believed' });
	add('rsa_declared_but_rsa2_signature', { fields: paid({ sign_type: 'RSA' }) });
	add('rsa2_declared_but_sha1_signature', { sign: { hash: 'RSA-SHA1' },
		verdict: 'bad_signature' });
	add('rsa_declared_downgrade_sha1', { fields: paid({ sign_type: 'RSA' }),
		sign: { hash: 'RSA-SHA1' }, verdict: 'bad_signature' });
	add('rsa_account_sha1', { signType: 'RSA', fields: paid({ sign_type: 'RSA' }),
		sign: { hash: 'RSA-SHA1' } });
	add('rsa_account_rsa2_signature', { signType: 'RSA', verdict: 'bad_signature' });
	add('rsa_old_application', { signType: 'RSA', sign: { hash: 'RSA-SHA1',
		key: keyPair('alipay-small', 1024) },
		files: { alipay_key: spkiPem(keyPair('alipay-small', 1024).publicKey) },
		fields: paid({ charset: undefined, version: undefined, auth_app_id: undefined,
			merchant_app_id: undefined, fund_bill_list: undefined, sign_type: 'RSA',
			subject: '测试订单' }) });
	add('pss_padding', { sign: { padding: crypto.constants.RSA_PKCS1_PSS_PADDING },
		verdict: 'bad_signature' });
	add('sha512', { sign: { hash: 'RSA-SHA512' }, verdict: 'bad_signature' });
	add('signed_by_merchant', { sign: { key: keyPair('app') }, verdict: 'bad_signature' });
	add('signature_of_the_encoded_body', { fields: paid({ sign: crypto.sign('RSA-SHA256',
		Buffer.from(encodeURIComponent(canonical(paid()).toString())),
		alipayKey().privateKey).toString('base64') }), verdict: 'bad_signature' });
}

function signTextCases(add) {
	const right = signature(paid());
	const bytes = Buffer.from(right, 'base64');
	const refused = ['bad_signature', 'malformed'];
	const text = (name, sign, verdict = 'bad_signature', note = undefined) =>
		add(name, { fields: paid({ sign }), verdict, note });
	add('sign_missing', { sign: null, verdict: 'malformed' });
	text('sign_empty', '', 'malformed');
	text('sign_blank', ' ');
	text('sign_not_base64', '!!!!');
	text('sign_truncated', right.slice(0, 336));
	text('sign_one_byte_more', Buffer.concat([bytes, Buffer.from([0])]).toString('base64'));
	text('sign_leading_zero', Buffer.concat([Buffer.from([0]), bytes]).toString('base64'));
	text('sign_padding_missing', right.replace(/=+$/, ''));
	text('sign_urlsafe_alphabet', Buffer.alloc(256, 0xfb).toString('base64url'));
	text('sign_line_breaks', right.replace(/(.{76})/g, '$1\n'));
	text('sign_double_encoded', encodeURIComponent(right));
	text('sign_all_zero', Buffer.alloc(256).toString('base64'));
	text('sign_all_ones', Buffer.alloc(256, 0xff).toString('base64'),
		'bad_signature', 'greater than the modulus');
	text('sign_md5_hex', crypto.createHash('md5').update('x').digest('hex'));
	text('sign_nul', Buffer.from([0, 0, 0, 0]));
	text('sign_very_long', 'A'.repeat(20000));
	text('sign_other_message', signature(paid({ total_amount: '0.01' })));
	add('sign_plus_not_escaped', { verdict: refused, body: Buffer.from(
		Object.entries(paid()).map(([n, v]) => `${n}=${encodeURIComponent(v)}`).join('&') +
		`&sign=${'+ab/'.repeat(86)}`) });
	add('sign_name_in_capitals', { fields: paid({ SIGN: right }), sign: null,
		verdict: 'malformed', note: 'names are exact' });
}

function tamperCases(add) {
	const change = (name, value) => (pairs) =>
		pairs.map(([n, v]) => [n, n === name ? value : v]);
	const bad = { verdict: 'bad_signature' };
	add('tampered_total_amount', { ...bad, wire: change('total_amount', '0.01') });
	add('tampered_trade_status', { ...bad, wire: change('trade_status', 'TRADE_FINISHED') });
	add('tampered_app_id', { ...bad, wire: change('app_id', '2021000000000002') });
	add('tampered_amount_reformatted', { ...bad, wire: change('point_amount', '0.0') });
	add('tampered_case_of_a_name', { ...bad,
		wire: (pairs) => pairs.map(([n, v]) => [n === 'subject' ? 'Subject' : n, v]) });
	add('param_removed', { ...bad,
		wire: (pairs) => pairs.filter(([n]) => n !== 'point_amount') });
	add('param_added', { ...bad, wire: (pairs) => [...pairs, ['extra', '1']] });
	add('unknown_future_param', { fields: paid({ brand_new_field_2030: 'x' }),
		note: 'whatever arrives is signed' });
	add('biz_content_reserialised', { ...bad, fields: fund(),
		wire: (pairs) => pairs.map(([n, v]) =>
			[n, n === 'biz_content' ? v.replace(/,/g, ', ') : v]) });
	add('params_sorted', { wire: (pairs) => [...pairs].sort() });
	add('params_reversed', { wire: (pairs) => [...pairs].reverse() });
	add('sort_underscore_and_digits', { fields: paid({ a_b: '1', a1: '2', ab: '3', aB: '4',
		a: '5' }), note: 'byte order: digits, capitals, "_", small letters' });
	add('sort_supplementary', { fields: paid({ '\u{ff5e}': '1', '\u{1f600}': '2' }),
		note: 'UTF-8 byte order is not UTF-16 order' });
	add('retry_new_notify_time', { fields: paid({ notify_time: '2026-03-01 10:04:06' }),
		events: [payment()] });
}

export function signCases(add) {
	ruleCases(add);
	algorithmCases(add);
	signTextCases(add);
	tamperCases(add);
}
