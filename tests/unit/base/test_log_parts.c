/*
 * What the log is made of: masking, forms, floods. If these fail, a buyer's
 * openid is on disk, a program cannot read the log, or a flood fills it.
 */
#include "log_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <jansson.h>

#include "paynotify/moment.h"

static char bytes[LOG_TEXT_BYTES_MAX], key[2000], word[300];

/* -- masking ----------------------------------------------------------------- */

static void
assert_masked(const char *message, const char *expected)
{
	char text[LOG_TEXT_BYTES_MAX + 1];
	struct pn_str masked = log_mask(pn_str_from(message), text);

	assert_true(masked.len < LOG_TEXT_BYTES_MAX);
	text[masked.len] = '\0';
	assert_string_equal(text, expected);
}

/* A buyer or a secret is in the log under its name. */
static void
test_mask__values_by_name(void **state)
{
	(void)state;
	assert_masked("openid=o1 x", "openid=*** x");
	assert_masked("\"payer\":{\"openid\":\"o\\\"1\"},\"a\":1",
	    "\"payer\":{\"openid\":\"***\\\"1\"},\"a\":1");
	assert_masked("{\\\"sub_openid\\\":\\\"o1\\\"}",
	    "{\\\"sub_openid\\\":\\\"***\\\"}");
	assert_masked("a=1&buyer_id=2&buyer_logon_id=159****5620&b=3",
	    "a=1&buyer_id=***&buyer_logon_id=***&b=3");
	assert_masked("<openid><![CDATA[o1]]></openid><Phone>1</Phone>",
	    "<openid><![CDATA[***]]></openid><Phone>***</Phone>");
	assert_masked("buyerUserId = 'x y' z", "buyerUserId = '***' z");
	assert_masked(
	    "host=h password=p dbname=d", "host=h password=*** dbname=d");
	assert_masked("password='a b' x", "password='***' x");
	assert_masked("bank-account: 1", "bank-account: ***");
	assert_masked("Authorization: Bearer a b", "Authorization: ***");
	assert_masked("sent \"Bearer a.b-c\" there", "sent \"Bearer ***");
	assert_masked("lease_token: a-b, x", "lease_token: ***, x");
	assert_masked("{\"access_token\":\"a\"}", "{\"access_token\":\"***\"}");
	/* What only looks like it. */
	assert_masked("password authentication failed for user \"x\"",
	    "password authentication failed for user \"x\"");
	assert_masked("secret_file: \"/a/b\"", "secret_file: \"/a/b\"");
	assert_masked("openid=", "openid=");
	assert_masked("phone", "phone");
}

/* A URL's password, or what its query carries, is in the log. */
static void
test_mask__urls(void **state)
{
	(void)state;
	assert_masked("at \"https://u:p@h.example:8/a?b=c#d\": 500",
	    "at \"https://***@h.example:8/a?***\": 500");
	assert_masked("postgresql://u:p@h1,h2/d?sslpassword=x y",
	    "postgresql://***@h1,h2/d?*** y");
	assert_masked("http://h/a@b", "http://h/a@b");
	assert_masked("http://h/?secret", "http://h/?***");
	assert_masked("POST /v1/x?token=1&a=2 failed", "POST /v1/x?*** failed");
	assert_masked("is it there? no", "is it there? no");
}

/* A row of the merchant's is in the log. */
static void
test_mask__details_of_postgresql(void **state)
{
	(void)state;
	assert_masked("Key (openid, a)=(o1, 2) already exists",
	    "Key (openid, a)=(***) already exists");
	assert_masked(
	    "Failing row contains (1, o1).", "Failing row contains (***");
	assert_masked("broken DETAIL:  Token \"x\"", "broken DETAIL:***");
	assert_masked("a CONTEXT: b", "a CONTEXT:***");
	assert_masked("-----BEGIN PRIVATE KEY-----", "-----BEGIN ***");
	assert_masked("is whsec_abc+/=", "is whsec_***");
}

/* A buyer is in the log without a name; or what an operator needs is not. */
static void
test_mask__values_by_shape(void **state)
{
	(void)state;
	assert_masked("of oUpF8uMuAJO_M2pxb1Q9zNjWeS6o!", "of ***!");
	assert_masked(
	    "oupf8umuajo_m2pxb1q9znjwes6o", "oupf8umuajo_m2pxb1q9znjwes6o");
	assert_masked("user 2088102117794491", "user 2088****4491");
	assert_masked(
	    "13812345678, +8613812345678", "138****5678, +86138****5678");
	assert_masked("6222021234567890128", "622202****0128");
	assert_masked("6222021234567890129", "6222021234567890129");
	assert_masked(
	    "4200000001202603010000000001", "4200000001202603010000000001");
	assert_masked("A13812345678", "A13812345678");
	assert_masked("zhang.san+1@example.com.", "z***@example.com.");
	assert_masked("in 12345 us, 1772330405", "in 12345 us, 1772330405");
}

/* A message that grows writes behind its buffer. */
static void
test_mask__never_passes_its_buffer(void **state)
{
	char masked[LOG_TEXT_BYTES_MAX];

	(void)state;
	for (size_t i = 0; i + 11 < sizeof(bytes); i += 11)
		memcpy(bytes + i, "cardno=1&a&", 11);
	assert_int_equal(
	    log_mask(pn_str_from(bytes), masked).len, LOG_TEXT_BYTES_MAX - 1);
}

/* -- forms ------------------------------------------------------------------- */

/* Linear congruential: the same bytes at every run. */
static unsigned
next_random(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (unsigned)(*seed >> 33);
}

/* Bytes as strangers send them: plain, controls, pieces of UTF-8, quotes. */
static struct pn_str
random_text(uint64_t *seed, char *data, size_t size)
{
	static const char spice[] = "\"\\={}\n\r\t \xe4\xb8\xad\xc2\x9b\xf0\x9f"
				    "\xed\xa0\x80\xe2\x80\xa8\x1b\x7f";
	size_t len = next_random(seed) % size;

	for (size_t i = 0; i < len; i++) {
		unsigned r = next_random(seed);

		data[i] = r % 3 == 0   ? (char)(r >> 8)
			  : r % 3 == 1 ? spice[(r >> 8) % (sizeof(spice) - 1)]
				       : (char)('a' + (r >> 8) % 26);
	}
	return (struct pn_str){ data, len };
}

/* One name=value, as the common parsers of logfmt take it: what is in quotes is
 * a string of JSON. Moves *at behind it. */
static void
read_pair(const char **at, const char *end)
{
	const char *from = *at;
	json_t *value;

	while (**at >= 'a' && **at <= 'z')
		(*at)++;
	assert_true(*at > from && **at == '=');
	from = ++(*at);
	if (**at != '"') {
		while (*at<end &&* * at> ' ' && **at != '"' && **at != '=')
			(*at)++;
		assert_true(*at > from);
		return;
	}
	for ((*at)++; **at != '"'; (*at)++) {
		if (**at == '\\')
			(*at)++;
		assert_true(*at < end);
	}
	(*at)++;
	value = json_loadb(
	    from, (size_t)(*at - from), JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	assert_non_null(value);
	json_decref(value);
}

static void
assert_readable(const struct log_line *line)
{
	struct log_text text;
	const char *at = text.data, *end;
	json_t *object;

	log_form_line(line, PN_LOG_JSON, &text);
	assert_true(text.len <= PN_LOG_LINE_BYTES_MAX);
	assert_int_equal(text.data[text.len - 1], '\n');
	assert_null(memchr(text.data, '\n', text.len - 1));
	object = json_loadb(
	    text.data, text.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	assert_true(json_is_object(object));
	assert_true(json_is_string(json_object_get(object, "msg")));
	json_decref(object);

	log_form_line(line, PN_LOG_LOGFMT, &text);
	assert_true(text.len <= PN_LOG_LINE_BYTES_MAX);
	end = text.data + text.len - 1;
	assert_int_equal(*end, '\n');
	for (read_pair(&at, end); at < end; read_pair(&at, end)) {
		assert_int_equal(*at, ' ');
		at++;
	}
	assert_true(pn_str_is_utf8((struct pn_str){ text.data, text.len }));
}

/* A program that reads the log stops at what a stranger sent. */
static void
test_form__any_bytes_are_readable(void **state)
{
	uint64_t seed = 20260301;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		struct log_line line = {
			.category =
			    (enum pn_log_category)(i % PN_LOG_CATEGORY_COUNT),
			.level = (enum pn_log_level)(i % PN_LOG_LEVEL_COUNT),
			.time_us = i,
		};
		struct pn_str text;

		line.message = random_text(&seed, bytes, sizeof(bytes));
		line.about.key = random_text(&seed, key, sizeof(key));
		text = random_text(&seed, word, sizeof(word) - 1);
		word[text.len] = '\0';
		line.about.tenant = line.about.peer = word;
		assert_readable(&line);
	}
}

/* The journal gets a field that it refuses, and all of the line is lost. */
static void
test_form__fields_of_the_journal(void **state)
{
	const struct log_line line = {
		.category = PN_LOG_IN_STORE,
		.level = PN_LOG_WARNING,
		.about = { .request_id = "r",
		    .provider = "p",
		    .tenant = "t",
		    .subject = "s",
		    .key = PN_STR("k\n"),
		    .peer = "e" },
		.message = PN_STR("m\"\n"),
	};
	static const char *const expected[LOG_FIELDS_MAX] = { "PRIORITY=4",
		"SYSLOG_IDENTIFIER=prog", "PAYNOTIFY_CATEGORY=store",
		"PAYNOTIFY_REQUEST=r", "PAYNOTIFY_PROVIDER=p",
		"PAYNOTIFY_TENANT=t", "PAYNOTIFY_SUBJECT=s", "PAYNOTIFY_PEER=e",
		"PAYNOTIFY_KEY=k\\n", "MESSAGE=m\"\\n" };
	struct iovec fields[LOG_FIELDS_MAX];
	struct log_text text;

	(void)state;
	assert_int_equal(
	    log_form_fields(&line, "prog", &text, fields), LOG_FIELDS_MAX);
	for (int i = 0; i < LOG_FIELDS_MAX; i++)
		assert_true(pn_str_is(
		    (struct pn_str){ fields[i].iov_base, fields[i].iov_len },
		    expected[i]));
}

/* -- floods ------------------------------------------------------------------ */

static const struct log_line some_line = {
	.level = PN_LOG_WARNING,
	.about = { .tenant = "shop1" },
};

static const struct log_line last_line = {
	.level = PN_LOG_WARNING,
	.message = PN_STR("last"),
};

static int64_t held_us; /* of what was told: when the last was held back */

static bool
told(bool all, int64_t now_us, unsigned *ret_held)
{
	struct log_flood_texts texts;
	struct log_line line;
	size_t at = 0;
	bool found = log_flood_next(&at, all, now_us, &line, &texts, ret_held);

	if (found) {
		assert_string_equal(line.about.tenant, "shop1");
		assert_null(line.about.provider);
		assert_int_equal(line.level, PN_LOG_WARNING);
		assert_true(pn_str_is(line.message, "last"));
		held_us = line.time_us;
	}
	return found;
}

/* Too many lines get through, the count is wrong, or it is never told when the
 * flood ends. */
static void
test_flood__ten_then_one_a_second(void **state)
{
	int64_t now_us = 1000 * PN_SECOND_US;
	unsigned held = 0, passed = 0;

	(void)state;
	for (int i = 0; i < 50; i++)
		passed += log_flood_admits(1, &some_line, 0, now_us, &held);
	assert_int_equal(passed, 10);
	log_flood_written(1, &last_line);
	now_us += PN_SECOND_US;
	assert_true(log_flood_admits(1, &some_line, 0, now_us, &held));
	assert_int_equal(held, 40);
	assert_false(log_flood_admits(1, &some_line, 0, now_us, &held));
	assert_true(log_flood_is_shut(1, now_us));
	/* It may go on. */
	now_us += 2 * PN_SECOND_US;
	assert_false(told(false, now_us, &held));
	now_us += 2 * PN_SECOND_US;
	assert_true(told(false, now_us, &held));
	assert_int_equal(held, 1);
	assert_int_equal(held_us, now_us - 4 * PN_SECOND_US);
	assert_false(told(true, now_us, &held));
	/* After a while it is as if there had been none. */
	now_us += 60 * PN_SECOND_US;
	for (passed = 0; log_flood_admits(1, &some_line, 0, now_us, &held);)
		passed++;
	assert_int_equal(passed, 10);
	assert_true(told(true, now_us, &held));
}

/* A state that lasts is told once a minute, not in between by its count. */
static void
test_flood__reminders_keep_their_interval(void **state)
{
	const int64_t minute_us = 60 * PN_SECOND_US;
	int64_t now_us = 2000 * PN_SECOND_US;
	unsigned held = 0;

	(void)state;
	assert_true(log_flood_admits(2, &some_line, minute_us, now_us, &held));
	log_flood_written(2, &last_line);
	now_us += 10 * PN_SECOND_US;
	assert_false(log_flood_admits(2, &some_line, minute_us, now_us, &held));
	now_us += 10 * PN_SECOND_US;
	assert_false(told(false, now_us, &held));
	now_us += minute_us;
	assert_true(log_flood_admits(2, &some_line, minute_us, now_us, &held));
	assert_int_equal(held, 1);
}

/* A flood under ever new names writes as many lines as there are names. */
static void
test_flood__many_names_are_bounded(void **state)
{
	int64_t now_us = 3000 * PN_SECOND_US;
	unsigned held, passed = 0;
	uint64_t seed = 1;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		uint64_t id =
		    (uint64_t)next_random(&seed) << 32 | next_random(&seed);

		passed += log_flood_admits(
		    id == 0 ? 1 : id, &some_line, 0, now_us, &held);
	}
	assert_in_range(passed, 200, 256 + 10);
}

/* Many tenants complain once in ten minutes, and then the database is away: not
 * a line of it, for ten minutes. */
static void
test_flood__an_outage_is_told_in_a_crowd(void **state)
{
	enum { TENANTS = 300 };
	const struct log_line error_line = { .level = PN_LOG_ERR };
	const int64_t reminder_us = 600 * PN_SECOND_US;
	int64_t now_us = 1000000 * PN_SECOND_US;
	unsigned held = 0, warned = 0, passed = 0, errors = 0;
	uint64_t seed = 7;

	(void)state;
	for (int i = 0; i < TENANTS; i++)
		warned += log_flood_admits((uint64_t)next_random(&seed) + 1,
		    &some_line, reminder_us, now_us, &held);
	/* Nearly all places are taken: the rest is the crowd. */
	assert_in_range(warned, 230, TENANTS);
	now_us += 12 * PN_SECOND_US;
	for (int i = 0; i < TENANTS; i++)
		passed += log_flood_admits((uint64_t)next_random(&seed) + 1,
		    &some_line, PN_LOG_BURST, now_us, &held);
	assert_true(passed >= 10);
	/* Also while the crowd of the others is muted. */
	for (int i = 0; i < TENANTS; i++)
		errors += log_flood_admits((uint64_t)next_random(&seed) + 1,
		    &error_line, reminder_us, now_us, &held);
	assert_true(errors >= 10);
	for (int i = 0; i < 30; i++) {
		now_us += PN_SECOND_US;
		assert_true(log_flood_admits((uint64_t)next_random(&seed) + 1,
		    &error_line, reminder_us, now_us, &held));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mask__values_by_name),
		cmocka_unit_test(test_mask__urls),
		cmocka_unit_test(test_mask__details_of_postgresql),
		cmocka_unit_test(test_mask__values_by_shape),
		cmocka_unit_test(test_mask__never_passes_its_buffer),
		cmocka_unit_test(test_form__any_bytes_are_readable),
		cmocka_unit_test(test_form__fields_of_the_journal),
		cmocka_unit_test(test_flood__ten_then_one_a_second),
		cmocka_unit_test(test_flood__reminders_keep_their_interval),
		cmocka_unit_test(test_flood__many_names_are_bounded),
		cmocka_unit_test(test_flood__an_outage_is_told_in_a_crowd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
