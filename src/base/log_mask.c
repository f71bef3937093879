/*
 * What must not be logged, masked in a message: secrets, and what tells who a
 * buyer is. The call sites are meant to have none of it; but texts come from
 * outside - a database's error with the row in it, an upstream's answer, a URL
 * with a password - and this is the last place before they are on disk.
 *
 *   a value by its name   openid=, "buyer_logon_id":, <phone>, token=, ...:
 *                         the name's end decides, so sub_openid too
 *   a URL                 its user and password, its query
 *   PostgreSQL's details  DETAIL:, CONTEXT:, "Failing row contains (...", and
 *                         "Key (...)=(...)"
 *   a value by its shape  an openid, a user of Alipay (2088...), a mobile phone,
 *                         a bank card, an e-mail address, whsec_..., PEM,
 *                         Bearer ...
 *
 * Shapes that an operator may have to recognise keep their ends: 138****5678.
 * A seller's 2088... has the same shape as a buyer's and is masked alike. What
 * has no shape and no name - an order number, a person's name in prose - cannot
 * be found here.
 *
 * One pass, no allocation; a message that grows is cut.
 */
#include "log_internal.h"

#include <assert.h>

struct scan {
	struct pn_str in;
	size_t at;
	char *out;
	size_t len;
};

static const char stars[] = "***";

/* Ends of names, folded: small letters, no "_" and no "-". */
static const char *const private_names[] = { "openid", "unionid", "buyerid",
	"payerid", "userid", "logonid", "loginid", "cardno", "cardnumber",
	"idcard", "certno", "accountno", "accountnumber", "bankaccount",
	"phone", "phonenumber", "telephone", "mobile", "mobileno", "email",
	"realname", "password", "passwd", "passphrase", "secret", "apikey",
	"token", "privatekey" };
/* Their value is the rest of the line. */
static const char *const private_headers[] = { "authorization", "cookie" };
/* What follows is data. */
static const char *const private_tails[] = { "DETAIL:", "CONTEXT:",
	"Failing row contains (", "-----BEGIN ", "whsec_", "Bearer " };

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       is_digit(c) || c == '_' || c == '-';
}

static void
emit(struct scan *scan, const char *data, size_t len)
{
	if (len > LOG_TEXT_BYTES_MAX - 1 - scan->len)
		len = LOG_TEXT_BYTES_MAX - 1 - scan->len;
	memcpy(scan->out + scan->len, data, len);
	scan->len += len;
}

/* Copies up to end. */
static void
keep(struct scan *scan, size_t end)
{
	assert(end >= scan->at && end <= scan->in.len);
	emit(scan, scan->in.data + scan->at, end - scan->at);
	scan->at = end;
}

static void
mask(struct scan *scan, size_t end)
{
	assert(end >= scan->at && end <= scan->in.len);
	emit(scan, stars, sizeof(stars) - 1);
	scan->at = end;
}

/* The byte at i; NUL behind the end. */
static char
peek(const struct scan *scan, size_t i)
{
	return i < scan->in.len ? scan->in.data[i] : '\0';
}

/* Up to the first of the bytes in set, or the end. */
static size_t
until(const struct scan *scan, size_t at, const char *set)
{
	while (at < scan->in.len && strchr(set, peek(scan, at)) == NULL)
		at++;
	return at;
}

static bool
is_here(const struct scan *scan, size_t at, const char *text)
{
	return pn_str_starts(
	    (struct pn_str){ scan->in.data + at, scan->in.len - at }, text);
}

static size_t
word_end(const struct scan *scan, size_t at)
{
	while (is_word(peek(scan, at)))
		at++;
	return at;
}

/* -- by name ----------------------------------------------------------------- */

enum { NAME_BYTES_MAX = 64 };

static bool
ends_in(const char *name, size_t len, const char *const *ends, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t bytes = strlen(ends[i]);

		if (bytes <= len &&
		    memcmp(name + len - bytes, ends[i], bytes) == 0)
			return true;
	}
	return false;
}

/* Where the value behind a name begins, or 0. *ret_end: the bytes that end
 * it. */
static size_t
value_start(const struct scan *scan, size_t at, const char **ret_end)
{
	char c;

	while (strchr("\\\"' ", peek(scan, at)) != NULL && at < scan->in.len)
		at++;
	*ret_end = " \t\r\n&,;)}]\"'<\\";
	if (is_here(scan, at, ")=(")) {
		*ret_end = ")";
		return at + 3;
	}
	c = peek(scan, at);
	if (c == '>') {
		*ret_end = "<]";
		return is_here(scan, at + 1, "<![CDATA[") ? at + 10 : at + 1;
	}
	if (c != '=' && c != ':')
		return 0;
	at++;
	while (peek(scan, at) == ' ' || peek(scan, at) == '\\')
		at++;
	c = peek(scan, at);
	if (c == '"' || c == '\'') {
		*ret_end = c == '"' ? "\"\\" : "'\\";
		return at + 1;
	}
	return at;
}

/* A name whose value is nobody's business; end: of the name. */
static bool
mask_named(struct scan *scan, size_t end)
{
	char name[NAME_BYTES_MAX];
	const char *ends;
	size_t len = 0, start;
	bool header;

	if (end - scan->at > sizeof(name))
		return false;
	for (size_t i = scan->at; i < end; i++) {
		char c = scan->in.data[i];

		if (c != '_' && c != '-')
			name[len++] =
			    c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
	}
	header = ends_in(name, len, private_headers, PN_COUNT(private_headers));
	if (!header &&
	    !ends_in(name, len, private_names, PN_COUNT(private_names)))
		return false;
	start = value_start(scan, end, &ends);
	if (start == 0 || start >= scan->in.len)
		return false;
	keep(scan, start);
	end = header ? scan->in.len : until(scan, start, ends);
	if (end > start)
		mask(scan, end);
	return true;
}

/* -- URLs -------------------------------------------------------------------- */

static const char url_ends[] = " \t\r\n\"'<>";

static void
mask_query(struct scan *scan)
{
	keep(scan, scan->at + 1);
	mask(scan, until(scan, scan->at, url_ends));
}

/* scheme://user:password@host; end: of the scheme. */
static bool
mask_url(struct scan *scan, size_t end)
{
	size_t at, last, stop;

	if (!is_here(scan, end, "://"))
		return false;
	keep(scan, end + 3);
	last = until(scan, scan->at, url_ends);
	stop = until(scan, scan->at, " \t\r\n\"'<>/?#");
	for (at = stop; at > scan->at && peek(scan, at) != '@'; at--)
		;
	if (at > scan->at)
		mask(scan, at);
	at = until(scan, scan->at, "?#");
	if (at < last) {
		keep(scan, at);
		mask_query(scan);
	}
	return true;
}

/* /path?name=value, without a scheme. */
static bool
is_query(const struct scan *scan)
{
	size_t end;

	if (peek(scan, scan->at) != '?' || !is_word(peek(scan, scan->at + 1)))
		return false;
	end = word_end(scan, scan->at + 1);
	return peek(scan, end) == '=';
}

/* -- by shape ---------------------------------------------------------------- */

/* Keeps that many bytes at both ends of a word. */
static void
mask_middle(struct scan *scan, size_t end, size_t head, size_t tail)
{
	assert(head + tail < end - scan->at);
	keep(scan, scan->at + head);
	emit(scan, "****", 4);
	scan->at = end - tail;
	keep(scan, end);
}

/* 28 of base64url that begin with "o", and look like it: WeChat's openid. */
static bool
is_openid(struct pn_str word)
{
	bool small = false, large = false, digit = false;

	if (word.len != 28 || word.data[0] != 'o')
		return false;
	for (size_t i = 1; i < word.len; i++) {
		small |= word.data[i] >= 'a' && word.data[i] <= 'z';
		large |= word.data[i] >= 'A' && word.data[i] <= 'Z';
		digit |= is_digit(word.data[i]);
	}
	return small && large && digit;
}

/* Luhn's check of a card's number. */
static bool
is_card(struct pn_str digits)
{
	int sum = 0;

	if (digits.len < 16 || digits.len > 19 ||
	    strchr("3456", digits.data[0]) == NULL)
		return false;
	for (size_t i = 0; i < digits.len; i++) {
		int digit = digits.data[digits.len - 1 - i] - '0';

		if (i % 2 == 1)
			digit = digit > 4 ? 2 * digit - 9 : 2 * digit;
		sum += digit;
	}
	return sum % 10 == 0;
}

/* Of mainland China, with or without 86 before it. */
static bool
is_mobile(struct pn_str digits)
{
	if (digits.len == 13 && pn_str_starts(digits, "86"))
		digits = (struct pn_str){ digits.data + 2, 11 };
	return digits.len == 11 && digits.data[0] == '1' &&
	       digits.data[1] >= '3';
}

static bool
mask_digits(struct scan *scan, size_t end)
{
	struct pn_str digits = { scan->in.data + scan->at, end - scan->at };

	for (size_t i = 0; i < digits.len; i++)
		if (!is_digit(digits.data[i]))
			return false;
	if (is_mobile(digits))
		mask_middle(scan, end, digits.len - 8, 4);
	else if (digits.len == 16 && pn_str_starts(digits, "2088"))
		mask_middle(scan, end, 4, 4);
	else if (is_card(digits))
		mask_middle(scan, end, 6, 4);
	else
		return false;
	return true;
}

/* local@domain.tld; the local part begins at the word. */
static bool
mask_email(struct scan *scan)
{
	size_t at = scan->at, dot;

	while (is_word(peek(scan, at)) ||
	       (peek(scan, at) != '\0' && strchr(".+%", peek(scan, at))))
		at++;
	if (peek(scan, at) != '@' || !is_word(peek(scan, at + 1)))
		return false;
	dot = word_end(scan, at + 1);
	if (peek(scan, dot) != '.' || !is_word(peek(scan, dot + 1)))
		return false;
	keep(scan, scan->at + 1);
	mask(scan, at);
	keep(scan, dot);
	return true;
}

static bool
mask_tail(struct scan *scan)
{
	for (size_t i = 0; i < PN_COUNT(private_tails); i++) {
		if (!is_here(scan, scan->at, private_tails[i]))
			continue;
		keep(scan, scan->at + strlen(private_tails[i]));
		mask(scan, scan->in.len);
		return true;
	}
	return false;
}

/* At the start of a word. */
static void
mask_word(struct scan *scan)
{
	size_t end = word_end(scan, scan->at);
	struct pn_str word = { scan->in.data + scan->at, end - scan->at };

	if (mask_tail(scan) || mask_url(scan, end) || mask_named(scan, end))
		return;
	if (is_openid(word))
		mask(scan, end);
	else if (!mask_digits(scan, end) && !mask_email(scan))
		keep(scan, end);
}

struct pn_str
log_mask(struct pn_str message, char ret_text[LOG_TEXT_BYTES_MAX])
{
	struct scan scan = { .in = message, .out = ret_text };

	while (scan.at < message.len) {
		if (is_word(message.data[scan.at])) {
			mask_word(&scan);
		} else if (is_query(&scan)) {
			mask_query(&scan);
		} else if (is_here(&scan, scan.at, ")=(")) {
			keep(&scan, scan.at + 3);
			mask(&scan, until(&scan, scan.at, ")"));
		} else {
			keep(&scan, scan.at + 1);
		}
	}
	return (struct pn_str){ ret_text, scan.len };
}
