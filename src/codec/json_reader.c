/*
 * From JSON text to json_t, strictly and in one pass.
 *
 * jansson's own decoder takes 160 instructions a byte, because it looks at one
 * byte at a time and copies each through a buffer: 16 us for an envelope of
 * WeChat, as much as verifying its signature, and every notification has two
 * documents. Here the text is known to be UTF-8 before (eight bytes at a time),
 * a string without escapes is taken as one slice, and nothing recurses: the
 * open containers are on a stack of PN_JSON_DEPTH_MAX. Values, hashing and
 * reals stay jansson's. tests/fuzz/fuzz_json.c holds both decoders against each
 * other: what one takes, the other takes, with the same value.
 *
 * Stricter than jansson in two ways: the depth, and the length of a number. A
 * real that underflows to 0 is fine for jansson, but the text of the payload
 * goes to PostgreSQL as it is, where a number with 20,000 digits behind the
 * point makes the statement fail.
 *
 * Ownership: root owns all; a container is put into its parent when it is
 * opened, so that a fault anywhere is one json_decref(root).
 */
#include "json_reader.h"

#include <assert.h>
#include <errno.h>

#include "paynotify/buf.h"
#include "paynotify/limits.h"
#include "paynotify/parse.h"

struct reader {
	struct pn_str text;
	size_t at;
	json_t *root;                     /* owned */
	json_t *stack[PN_JSON_DEPTH_MAX]; /* open containers, borrowed */
	size_t depth;
	struct pn_str key;                    /* of the value that comes next */
	struct pn_buf key_bytes, value_bytes; /* where escapes were undone */
	struct pn_error *error;
};

static int
refuse(struct reader *reader, const char *what)
{
	return pn_error_set(
	    reader->error, 1, "%s at byte %zu", what, reader->at);
}

static int
fail_memory(struct reader *reader)
{
	return pn_error_set(reader->error, -ENOMEM, "out of memory");
}

/* The byte at hand; NUL at the end, which no JSON has outside of strings. */
static char
peek(const struct reader *reader)
{
	return reader->at < reader->text.len ? reader->text.data[reader->at]
					     : '\0';
}

static char
skip_space(struct reader *reader)
{
	char c = peek(reader);

	while (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
		reader->at++;
		c = peek(reader);
	}
	return c;
}

/* Four hex digits behind "\u"; false when they are none. */
static bool
take_unit(struct reader *reader, unsigned *ret_unit)
{
	unsigned value = 0;
	char c;

	for (int i = 0; i < 4; i++) {
		c = peek(reader);
		if (c >= '0' && c <= '9')
			value = value << 4 | (unsigned)(c - '0');
		else if (c >= 'a' && c <= 'f')
			value = value << 4 | (unsigned)(c - 'a' + 10);
		else if (c >= 'A' && c <= 'F')
			value = value << 4 | (unsigned)(c - 'A' + 10);
		else
			return false;
		reader->at++;
	}
	*ret_unit = value;
	return true;
}

static void
add_utf8(struct pn_buf *out, unsigned code)
{
	assert(code <= 0x10ffff);
	if (code < 0x80) {
		pn_buf_add_char(out, (char)code);
		return;
	}
	if (code < 0x800) {
		pn_buf_add_char(out, (char)(0xc0 | code >> 6));
	} else {
		if (code < 0x10000) {
			pn_buf_add_char(out, (char)(0xe0 | code >> 12));
		} else {
			pn_buf_add_char(out, (char)(0xf0 | code >> 18));
			pn_buf_add_char(
			    out, (char)(0x80 | (code >> 12 & 0x3f)));
		}
		pn_buf_add_char(out, (char)(0x80 | (code >> 6 & 0x3f)));
	}
	pn_buf_add_char(out, (char)(0x80 | (code & 0x3f)));
}

/* Behind "\u": one code point, of one unit or of a pair of surrogates. */
static int
take_code(struct reader *reader, struct pn_buf *out)
{
	unsigned high, low;

	if (!take_unit(reader, &high))
		return refuse(reader, "invalid \\u escape");
	if (high >= 0xdc00 && high <= 0xdfff)
		return refuse(reader, "lone surrogate");
	if (high < 0xd800 || high > 0xdbff) {
		add_utf8(out, high);
		return 0;
	}
	if (peek(reader) != '\\')
		return refuse(reader, "lone surrogate");
	reader->at++;
	if (peek(reader) != 'u')
		return refuse(reader, "lone surrogate");
	reader->at++;
	if (!take_unit(reader, &low) || low < 0xdc00 || low > 0xdfff)
		return refuse(reader, "lone surrogate");
	add_utf8(out, 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00));
	return 0;
}

static int
take_escape(struct reader *reader, struct pn_buf *out)
{
	static const char names[] = "\"\\/bfnrt";
	static const char values[] = "\"\\/\b\f\n\r\t";
	char c = peek(reader);
	const char *name;

	if (c == 'u') {
		reader->at++;
		return take_code(reader, out);
	}
	name = c == '\0' ? NULL : strchr(names, c);
	if (name == NULL)
		return refuse(reader, "invalid escape");
	pn_buf_add_char(out, values[name - names]);
	reader->at++;
	return 0;
}

/* Moves on to the next byte that means something inside a string. */
static char
skip_plain(struct reader *reader)
{
	const unsigned char *bytes = (const unsigned char *)reader->text.data;
	size_t at = reader->at, len = reader->text.len;

	while (at < len && bytes[at] >= 0x20 && bytes[at] != '"' &&
	       bytes[at] != '\\')
		at++;
	reader->at = at;
	return at < len ? (char)bytes[at] : '\0';
}

/* A string, from its first quote to behind its last. The slice is in the text,
 * or in scratch when there were escapes. */
static int
take_string(
    struct reader *reader, struct pn_buf *scratch, struct pn_str *ret_string)
{
	const char *plain;
	char c;
	int r;

	assert(peek(reader) == '"');
	reader->at++;
	plain = reader->text.data + reader->at;
	c = skip_plain(reader);
	if (c == '"') {
		*ret_string = (struct pn_str){ plain,
			(size_t)(reader->text.data + reader->at - plain) };
		reader->at++;
		return 0;
	}
	pn_buf_reset(scratch);
	while (c == '\\') {
		pn_buf_add(scratch, plain,
		    (size_t)(reader->text.data + reader->at - plain));
		reader->at++;
		r = take_escape(reader, scratch);
		if (r != 0)
			return r;
		plain = reader->text.data + reader->at;
		c = skip_plain(reader);
	}
	if (c != '"')
		return refuse(reader, reader->at == reader->text.len
					  ? "unterminated string"
					  : "control byte in a string");
	pn_buf_add(
	    scratch, plain, (size_t)(reader->text.data + reader->at - plain));
	reader->at++;
	if (pn_buf_failed(scratch))
		return fail_memory(reader);
	*ret_string = pn_buf_str(scratch);
	return 0;
}

static size_t
skip_digits(struct reader *reader)
{
	size_t start = reader->at;
	char c;

	for (c = peek(reader); c >= '0' && c <= '9'; c = peek(reader))
		reader->at++;
	return reader->at - start;
}

/* The grammar of a number, without its value. */
static int
skip_number(struct reader *reader, bool *ret_real)
{
	bool zero, real = false;
	size_t digits;

	if (peek(reader) == '-')
		reader->at++;
	zero = peek(reader) == '0';
	digits = skip_digits(reader);
	if (digits == 0 || (zero && digits > 1))
		return refuse(reader, "invalid number");
	if (peek(reader) == '.') {
		reader->at++;
		real = true;
		if (skip_digits(reader) == 0)
			return refuse(reader, "invalid number");
	}
	if (peek(reader) == 'e' || peek(reader) == 'E') {
		reader->at++;
		real = true;
		if (peek(reader) == '+' || peek(reader) == '-')
			reader->at++;
		digits = skip_digits(reader);
		if (digits == 0)
			return refuse(reader, "invalid number");
		if (digits > PN_JSON_EXPONENT_DIGITS_MAX)
			return refuse(reader, "number out of range");
	}
	*ret_real = real;
	return 0;
}

static int
take_number(struct reader *reader, json_t **ret_value)
{
	struct pn_str number = { reader->text.data + reader->at, 0 };
	size_t start = reader->at;
	json_error_t error;
	int64_t integer;
	json_t *value;
	bool real = false;
	int r;

	r = skip_number(reader, &real);
	if (r != 0)
		return r;
	number.len = reader->at - start;
	if (number.len > PN_JSON_NUMBER_BYTES_MAX)
		return refuse(reader, "number out of range");
	if (real) {
		value = json_loadb(
		    number.data, number.len, JSON_DECODE_ANY, &error);
		if (value == NULL &&
		    json_error_code(&error) != json_error_out_of_memory)
			return refuse(reader, "number out of range");
	} else {
		if (pn_parse_int64(number, &integer) != 0)
			return refuse(reader, "number out of range");
		value = json_integer(integer);
	}
	*ret_value = value;
	return value == NULL ? fail_memory(reader) : 0;
}

static int
take_word(struct reader *reader, json_t **ret_value)
{
	struct pn_str rest = { reader->text.data + reader->at,
		reader->text.len - reader->at };

	if (pn_str_starts(rest, "true")) {
		reader->at += strlen("true");
		*ret_value = json_true();
	} else if (pn_str_starts(rest, "false")) {
		reader->at += strlen("false");
		*ret_value = json_false();
	} else if (pn_str_starts(rest, "null")) {
		reader->at += strlen("null");
		*ret_value = json_null();
	} else {
		return refuse(reader, "value expected");
	}
	return 0;
}

/* Any value; a container is opened only. */
static int
take_value(struct reader *reader, json_t **ret_value)
{
	struct pn_str string = { NULL, 0 };
	char c = skip_space(reader);
	int r;

	if (c == '"') {
		r = take_string(reader, &reader->value_bytes, &string);
		if (r != 0)
			return r;
		*ret_value = json_stringn_nocheck(string.data, string.len);
	} else if (c == '{') {
		*ret_value = json_object();
	} else if (c == '[') {
		*ret_value = json_array();
	} else if (c == '-' || (c >= '0' && c <= '9')) {
		return take_number(reader, ret_value);
	} else {
		return take_word(reader, ret_value);
	}
	return *ret_value == NULL ? fail_memory(reader) : 0;
}

/* Puts a value where it belongs; it is taken over, also on failure. */
static int
attach(struct reader *reader, json_t *value)
{
	json_t *parent;
	int r;

	if (reader->depth == 0) {
		assert(reader->root == NULL);
		reader->root = value;
		return 0;
	}
	parent = reader->stack[reader->depth - 1];
	if (json_is_object(parent))
		r = json_object_setn_new_nocheck(
		    parent, reader->key.data, reader->key.len, value);
	else
		r = json_array_append_new(parent, value);
	return r != 0 ? fail_memory(reader) : 0;
}

/* A name, its colon, and whether the object at hand has it already. */
static int
take_key(struct reader *reader)
{
	int r;

	if (skip_space(reader) != '"')
		return refuse(reader, "name expected");
	r = take_string(reader, &reader->key_bytes, &reader->key);
	if (r != 0)
		return r;
	/* jansson's iterators give names as C strings. */
	if (memchr(reader->key.data, '\0', reader->key.len) != NULL)
		return refuse(reader, "NUL in a name");
	if (json_object_getn(reader->stack[reader->depth - 1], reader->key.data,
		reader->key.len) != NULL)
		return refuse(reader, "duplicate name");
	if (skip_space(reader) != ':')
		return refuse(reader, "\":\" expected");
	reader->at++;
	return 0;
}

/* Behind a value: closes containers until one goes on with a comma. Returns 0
 * at a place where a value is expected; sets *ret_done at the end. */
static int
go_on(struct reader *reader, bool *ret_done)
{
	bool object;
	char c;

	*ret_done = false;
	while (reader->depth > 0) {
		object = json_is_object(reader->stack[reader->depth - 1]);
		c = skip_space(reader);
		if (c == ',') {
			reader->at++;
			return object ? take_key(reader) : 0;
		}
		if (c != (object ? '}' : ']'))
			return refuse(reader, "\",\" or end expected");
		reader->at++;
		reader->depth--;
	}
	(void)skip_space(reader);
	if (reader->at < reader->text.len)
		return refuse(reader, "end expected");
	*ret_done = true;
	return 0;
}

/* Behind the bracket of a container that has been attached. Sets *ret_empty
 * when it is closed at once. */
static int
enter(struct reader *reader, json_t *container, bool *ret_empty)
{
	bool object = json_is_object(container);

	if (reader->depth == PN_JSON_DEPTH_MAX)
		return refuse(reader, "nested too deep");
	reader->at++;
	*ret_empty = skip_space(reader) == (object ? '}' : ']');
	if (*ret_empty) {
		reader->at++;
		return 0;
	}
	reader->stack[reader->depth++] = container;
	return object ? take_key(reader) : 0;
}

static int
read_all(struct reader *reader)
{
	bool done = false, empty = false;
	json_t *value = NULL;
	int r;

	/* Every turn takes at least one byte, so it ends with the text. */
	while (!done) {
		r = take_value(reader, &value);
		if (r == 0)
			r = attach(reader, value);
		if (r != 0)
			return r;
		if (json_is_object(value) || json_is_array(value)) {
			r = enter(reader, value, &empty);
			if (r != 0)
				return r;
			if (!empty)
				continue;
		}
		r = go_on(reader, &done);
		if (r != 0)
			return r;
	}
	return 0;
}

int
pn_json_read(struct pn_str text, json_t **ret_value, struct pn_error *ret_error)
{
	struct reader reader = { .text = text, .error = ret_error };
	size_t bad;
	int r;

	reader.at = pn_str_utf8_prefix(text, &bad);
	if (reader.at < text.len)
		return refuse(&reader, "not UTF-8");
	reader.at = 0;
	/* Undoing escapes never makes a text longer. */
	reader.key_bytes = pn_buf_init(text.len);
	reader.value_bytes = pn_buf_init(text.len);
	r = read_all(&reader);
	pn_buf_done(&reader.key_bytes);
	pn_buf_done(&reader.value_bytes);
	if (r != 0) {
		json_decref(reader.root);
		return r;
	}
	*ret_value = reader.root;
	return 0;
}
