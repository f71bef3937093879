/*
 * The key of a request, and what makes it the same request as another.
 *
 * A key comes bare, as most clients send it, or as a string of RFC 8941, as
 * draft-ietf-httpapi-idempotency-key-header has it: "abc" and abc are one key.
 * A value that begins with a quote is never taken for a bare one: a client that
 * lost the second half of its key would share it with all that lost theirs.
 *
 * A key goes to the upstream bare, so what would not come out of a header there as
 * the key that it is here is refused: "k " with its blank is k for who reads it, and
 * a quote in front makes a string of it again. Two keys that the upstream, and the
 * provider behind it, take for one are two charges under one key.
 *
 * A request is hashed by what its sender means: where it goes beside the route, in
 * the one form of path.c, and the body; JSON in its canonical form, because
 * libraries write members in another order after an upgrade, or on each run. All
 * that RFC 8259 calls JSON has one: whether to refuse a number beyond 64 bits or a
 * name that stands twice is the upstream's decision. So it is with bytes that are
 * called JSON and are none, which are taken as they are. Headers do not count:
 * tracing ids and dates differ in every repeat.
 *
 * What is hashed is framed (lengths first), so that bytes cannot move from the
 * query to the rest of the path, or from there to the body, unnoticed.
 */
#include "guard_internal.h"

#include <assert.h>
#include <errno.h>

#include "paynotify/digest.h"
#include "paynotify/json.h"

enum {
	KEY_BYTES_MAX = 255,   /* what guard_claim() takes; see 0007 */
	FRAME_BYTES_MAX = 128, /* two lengths, a word and a digest */
};

/* -- strings of RFC 8941 ---------------------------------------------------- */

static char
peek(struct pn_str text)
{
	return text.len > 0 ? text.data[0] : '\0';
}

static char
take(struct pn_str *text)
{
	char c = *text->data;

	assert(text->len > 0);
	text->data++;
	text->len--;
	return c;
}

static bool
is_printable(char c)
{
	return c >= 0x20 && c <= 0x7e;
}

/* The string that text begins with; *text moves behind it. out NULL: it is only
 * skipped. *ret_len counts also what is past KEY_BYTES_MAX and not written. False:
 * it is none, or has no end. */
static bool
take_string(struct pn_str *text, char *out, size_t *ret_len)
{
	size_t len = 0;
	char c;

	assert(peek(*text) == '"');
	(void)take(text);
	while (text->len > 0) {
		c = take(text);
		if (c == '"') {
			*ret_len = len;
			return true;
		}
		if (c == '\\') {
			c = peek(*text);
			if (c != '"' && c != '\\')
				return false;
			(void)take(text);
		}
		if (!is_printable(c))
			return false;
		if (out != NULL && len < KEY_BYTES_MAX)
			out[len] = c;
		len++;
	}
	return false;
}

static bool
is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_parameter_name(char c)
{
	return is_lower(c) || is_digit(c) ||
	       (c != '\0' && strchr("_-.*", c) != NULL);
}

/* A bare item that is no string: a number, a token, a boolean, bytes. What each
 * of them is made of is not looked at, only that nothing else is there. */
static bool
take_bare_item(struct pn_str *text)
{
	size_t before = text->len;
	char c = peek(*text);

	while (is_lower(c) || is_digit(c) || (c >= 'A' && c <= 'Z') ||
	       (c != '\0' && strchr("!#$%&'*+-.^_`|~:/?=", c) != NULL)) {
		(void)take(text);
		c = peek(*text);
	}
	return text->len < before;
}

/* Whether text is what may stand behind an item: ;name, ;name=value. */
static bool
is_parameters(struct pn_str text)
{
	size_t len;

	while (text.len > 0) {
		if (take(&text) != ';')
			return false;
		while (peek(text) == ' ')
			(void)take(&text);
		if (!is_lower(peek(text)) && peek(text) != '*')
			return false;
		while (is_parameter_name(peek(text)))
			(void)take(&text);
		if (peek(text) != '=')
			continue;
		(void)take(&text);
		if (peek(text) == '"' ? !take_string(&text, NULL, &len)
				      : !take_bare_item(&text))
			return false;
	}
	return true;
}

/* -- the key ---------------------------------------------------------------- */

static enum pn_problem
unquote(struct pn_str value, struct pn_arena *arena, struct pn_str *ret_key)
{
	char key[KEY_BYTES_MAX];
	struct pn_str text = value;
	size_t len;

	if (!take_string(&text, key, &len) || !is_parameters(text))
		return PN_PROBLEM_KEY_MALFORMED;
	if (len > KEY_BYTES_MAX)
		return PN_PROBLEM_KEY_TOO_LONG;
	text = pn_str_trim((struct pn_str){ key, len });
	if (text.len == 0)
		return PN_PROBLEM_KEY_EMPTY;
	if (text.len < len || peek(text) == '"')
		return PN_PROBLEM_KEY_MALFORMED;
	*ret_key = pn_arena_copy(arena, (struct pn_str){ key, len });
	return ret_key->data == NULL ? PN_PROBLEM_MEMORY : PN_PROBLEM_NONE;
}

enum pn_problem
pn_guard_key(const struct pn_request *request, struct pn_arena *arena,
    struct pn_str *ret_key)
{
	struct pn_str value, other;
	size_t values, others;

	values = pn_request_header(request, "Idempotency-Key", &value);
	others = pn_request_header(request, "X-Idempotency-Key", &other);
	if (values + others == 0)
		return PN_PROBLEM_KEY_MISSING;
	if (values + others > 1)
		return PN_PROBLEM_KEY_REPEATED;
	value = pn_str_trim(values == 1 ? value : other);
	if (value.len == 0)
		return PN_PROBLEM_KEY_EMPTY;
	if (peek(value) == '"')
		return unquote(value, arena, ret_key);
	for (size_t i = 0; i < value.len; i++)
		if (!is_printable(value.data[i]))
			return PN_PROBLEM_KEY_MALFORMED;
	if (value.len > KEY_BYTES_MAX)
		return PN_PROBLEM_KEY_TOO_LONG;
	*ret_key = pn_arena_copy(arena, value);
	return ret_key->data == NULL ? PN_PROBLEM_MEMORY : PN_PROBLEM_NONE;
}

/* -- the request ------------------------------------------------------------ */

/* "application/json" or "...+json", with parameters or without. */
static bool
is_json(const struct pn_request *request)
{
	static const char suffix[] = "+json";
	const size_t len = sizeof(suffix) - 1;
	struct pn_str type, end;

	if (pn_request_header(request, "Content-Type", &type) != 1)
		return false;
	type = pn_str_trim(pn_str_split(&type, ';'));
	if (pn_str_equal_fold(type, PN_STR("application/json")))
		return true;
	if (type.len <= len || memchr(type.data, '/', type.len) == NULL)
		return false;
	end = (struct pn_str){ type.data + type.len - len, len };
	return pn_str_equal_fold(end, PN_STR(suffix));
}

static void
add_framed(struct pn_buf *text, struct pn_str part)
{
	pn_buf_printf(text, "%zu:", part.len);
	pn_buf_add_str(text, part);
	pn_buf_add_char(text, ',');
}

int
pn_guard_request_hash(const struct pn_request *request, struct pn_str rest,
    struct pn_arena *arena, unsigned char ret_hash[PN_SHA256_BYTES])
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf text =
	    pn_buf_init(rest.len + 3 * request->query.len + FRAME_BYTES_MAX);
	unsigned char digest[PN_SHA256_BYTES];
	struct pn_str body = request->body, query;
	int r = 1;

	if (pn_guard_query(request->query, arena, &query) < 0)
		return -ENOMEM;
	if (is_json(request))
		r = pn_json_canonical(request->body, arena, &body);
	if (r < 0)
		return r;
	/* The body's own digest: it is not copied to stand behind the rest. */
	pn_sha256(body, digest);
	add_framed(&text, rest);
	add_framed(&text, query);
	pn_buf_add_text(&text, r == 0 ? "json:" : "bytes:");
	pn_buf_add(&text, digest, sizeof(digest));
	if (pn_buf_failed(&text))
		return -ENOMEM;
	pn_sha256(pn_buf_str(&text), ret_hash);
	return 0;
}
