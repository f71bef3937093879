// The form and the request around it: decoded exactly once, strictly.
import { paid, payment, signed } from './alipay_message.mjs';
import { form } from './lib.mjs';

export function formCases(add) {
	const whole = form(Object.entries(signed(paid()))).toString();
	const malformed = { verdict: 'malformed' };
	const body = (name, text, over = malformed) =>
		add(name, { body: Buffer.from(text), ...over });

	add('encoding_lower_case_hex', { encoding: { lower: true } });
	add('encoding_percent_20', { encoding: { percent20: true } });
	add('encoding_star_raw', { fields: paid({ subject: '*-_.~' }) });
	add('encoding_everything', { body: Buffer.from(Object.entries(signed(paid()))
		.map((pair) => pair.map((text) => Buffer.from(text).toString('hex')
			.replace(/../g, '%$&')).join('=')).join('&')) });
	add('encoding_name_with_percent', { fields: paid({ 'a b%': 'x' }) });
	add('value_with_raw_equals', { body: Buffer.from(`${form(Object.entries(signed(
		paid({ subject: 'a=b=c' })))).toString().replace('a%3Db%3Dc', 'a=b=c')}`),
	note: 'a pair is split at its first "="' });
	body('duplicate_parameter', `${whole}&total_amount=0.01`);
	body('duplicate_identical', `${whole}&app_id=2021000000000001`);
	body('duplicate_encoded_name', `${whole}&total%5Famount=0.01`);
	body('duplicate_sign', `${whole}&sign=AAAA`);
	body('param_without_equals', `${whole}&foo`);
	body('pair_empty', `${whole}&`);
	body('pair_empty_first', `&${whole}`);
	body('pair_empty_middle', whole.replace('&', '&&'));
	body('name_empty', `${whole}&=x`);
	body('percent_not_hex', `${whole}&a=%zz`);
	body('percent_cut', `${whole}&a=%4`);
	body('percent_alone', `${whole}&a=%`);
	body('percent_u', `${whole}&a=%u4e2d`);
	body('semicolon_separator', whole.replace(/&/g, ';'));
	body('fields_too_many', `${whole}&${Array.from({ length: 600 }, (_, i) => `x${i}=1`)
		.join('&')}`);
	body('body_empty', '');
	body('body_json', '{"out_trade_no":"1"}');
	body('body_xml', '<xml><sign>a</sign></xml>');
	body('body_newline_added', `${whole}\n`, { verdict: ['malformed', 'bad_signature'] });
	body('body_truncated', whole.slice(0, 700), { verdict: ['malformed', 'bad_signature'],
		headers: { 'Content-Length': String(whole.length) } });
	body('body_binary', Buffer.from([0, 255, 61, 1, 2, 3]));
	body('body_multipart', '--x\r\nContent-Disposition: form-data; name="sign"\r\n\r\nA\r\n' +
		'--x--\r\n', { ...malformed,
		headers: { 'Content-Type': 'multipart/form-data; boundary=x' } });

	add('query_string_not_signed', { target: '/notify/alipay/case?id=1&s=/pay/notify' });
	add('query_string_same_name', { target: '/notify/alipay/case?total_amount=0.01' });
	add('query_string_only', { target: `/notify/alipay/case?${whole}`,
		body: Buffer.alloc(0), ...malformed });
	add('query_string_in_body', { verdict: 'bad_signature',
		wire: (pairs) => [['s', '/pay/notify'], ...pairs] });
	add('method_get', { method: 'GET', target: `/notify/alipay/case?${whole}`,
		body: Buffer.alloc(0), verdict: ['malformed', 'unsupported'] });
	add('method_put', { method: 'PUT', verdict: ['malformed', 'unsupported'] });
	add('content_type_json', { headers: { 'Content-Type': 'application/json' } });
	add('content_type_absent', { raw: Buffer.from('POST /notify/alipay/case HTTP/1.1\r\n' +
		`Host: a\r\nContent-Length: ${whole.length}\r\n\r\n${whole}`) });
	add('content_type_charset_quoted', { headers: {
		'Content-Type': 'application/x-www-form-urlencoded;charset="GBK"' },
	fields: paid({ charset: undefined, subject: Buffer.from('b2e2cad4', 'hex') }),
	events: [payment({ payload: { subject: '测试' } })] });
	add('capture_lf_only', { raw: Buffer.from('POST /notify/alipay/case HTTP/1.1\n' +
		`Host: a\nContent-Length: ${whole.length}\n\n${whole}`) });
	add('over_max_body', { body: Buffer.from(`${whole}&x=${'a'.repeat(70000)}`),
		...malformed });
	add('value_every_byte', { fields: paid({ body: Buffer.from(
		Array.from({ length: 256 }, (_, i) => i)) }) });
}
