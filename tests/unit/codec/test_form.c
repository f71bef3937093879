/*
 * Form bodies. If these fail, Alipay's signatures are checked over other bytes
 * than were signed, or a forger finds a body with two meanings.
 */
#include "paynotify/form.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "paynotify/buf.h"
#include "paynotify/limits.h"

struct fixture {
	struct pn_arena *arena;
	struct pn_form form;
	struct pn_error error;
};

static struct fixture fixture;

static int
setup(void **state)
{
	fixture = (struct fixture){ .arena = pn_arena_new(PN_ARENA_BYTES_MAX) };
	*state = &fixture;
	return fixture.arena == NULL ? -1 : 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	pn_arena_free(f->arena);
	return 0;
}

static int
parse(struct fixture *f, struct pn_str body)
{
	f->error.text[0] = '\0';
	return pn_form_parse(f->arena, body, &f->form, &f->error);
}

/* A value decoded twice, or "+" left as it is. */
static void
test_form__decodes_exactly_once(void **state)
{
	struct fixture *f = *state;
	struct pn_str value;

	assert_int_equal(
	    parse(f,
		PN_STR("b=%2B+%25%32%30*-_.~&a%5B%5D=%e4%B8%ad&e=&n=1%002&q=a=b"
		       "&%C4=x")),
	    0);
	assert_int_equal(f->form.count, 6);
	assert_true(pn_str_is(pn_form_get(&f->form, "b"), "+ %20*-_.~"));
	assert_true(pn_str_is(pn_form_get(&f->form, "a[]"), "\xe4\xb8\xad"));
	assert_true(pn_str_is(pn_form_get(&f->form, "q"), "a=b"));
	assert_true(pn_str_is(pn_form_get(&f->form, "\xc4"), "x"));
	value = pn_form_get(&f->form, "n");
	assert_int_equal(value.len, 3);
	assert_memory_equal(value.data,
	    "1\0"
	    "2",
	    3);
	value = pn_form_get(&f->form, "e");
	assert_non_null(value.data);
	assert_int_equal(value.len, 0);
	assert_null(pn_form_get(&f->form, "absent").data);
}

/* The canonical string in another order than the provider's. */
static void
test_form__sorts_names_as_bytes(void **state)
{
	static const char *const names[] = { "A", "a", "a.b", "a0", "a_b", "aa",
		"b", "\xc3\xa4" };
	struct fixture *f = *state;

	assert_int_equal(
	    parse(f, PN_STR("b=&aa=&%C3%A4=&a_b=&a=&a0=&A=&a.b=")), 0);
	assert_int_equal(f->form.count, PN_COUNT(names));
	for (size_t i = 0; i < PN_COUNT(names); i++)
		assert_true(pn_str_is(f->form.fields[i].name, names[i]));
}

/* A body that two readers understand differently. */
static void
test_form__refuses_ambiguous_bodies(void **state)
{
	static const struct {
		const char *body, *why;
	} bad[] = {
		{ "a=1&a=1", "field \"a\" occurs twice" },
		{ "a=1&b=2&%61=3", "field \"a\" occurs twice" },
		{ "a=1&b", "pair at byte 4 has no \"=\"" },
		{ "a", "pair at byte 0 has no \"=\"" },
		{ "&a=1", "pair at byte 0 has no \"=\"" },
		{ "a=1&", "pair at byte 4 has no \"=\"" },
		{ "a=1&&b=2", "pair at byte 4 has no \"=\"" },
		{ "=1", "pair at byte 0 has no name" },
		{ "a=%", "field \"a\" at byte 0 has a malformed "
			 "percent-escape" },
		{ "a=%4", "field \"a\" at byte 0 has a malformed "
			  "percent-escape" },
		{ "b=1&a=%4g", "field \"a\" at byte 4 has a malformed "
			       "percent-escape" },
		{ "a=%u4e2d", "field \"a\" at byte 0 has a malformed "
			      "percent-escape" },
		{ "a=1%&b=2", "field \"a\" at byte 0 has a malformed "
			      "percent-escape" },
		{ "a%=1", "name at byte 0 has a malformed percent-escape" },
		{ "a%3D1%26b=2", "name at byte 0 holds \"&\", \"=\" or NUL" },
		{ "a%26b=2", "name at byte 0 holds \"&\", \"=\" or NUL" },
		{ "a%00b=2", "name at byte 0 holds \"&\", \"=\" or NUL" },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < PN_COUNT(bad); i++) {
		assert_int_equal(parse(f, pn_str_from(bad[i].body)), 1);
		assert_string_equal(f->error.text, bad[i].why);
	}
	assert_int_equal(parse(f, PN_STR("")), 0);
	assert_int_equal(f->form.count, 0);
	assert_null(pn_form_get(&f->form, "a").data);
}

/* More fields or longer names than anyone sends: work for a stranger. */
static void
test_form__stops_at_its_limits(void **state)
{
	PN_CLEANUP(pn_buf_done) struct pn_buf body = pn_buf_init(1 << 20);
	struct fixture *f = *state;

	for (int i = 0; i < PN_FORM_FIELDS_MAX; i++)
		pn_buf_printf(&body, "%sf%d=%d", i == 0 ? "" : "&", i, i);
	assert_int_equal(parse(f, pn_buf_str(&body)), 0);
	assert_int_equal(f->form.count, PN_FORM_FIELDS_MAX);
	assert_true(pn_str_is(pn_form_get(&f->form, "f511"), "511"));
	pn_buf_add_text(&body, "&x=1");
	assert_int_equal(parse(f, pn_buf_str(&body)), 1);
	pn_buf_reset(&body);
	for (int i = 0; i < PN_FORM_NAME_BYTES_MAX; i++)
		pn_buf_add_text(&body, "%41");
	pn_buf_add_text(&body, "=1");
	assert_int_equal(parse(f, pn_buf_str(&body)), 0);
	pn_buf_reset(&body);
	for (int i = 0; i <= PN_FORM_NAME_BYTES_MAX; i++)
		pn_buf_add_text(&body, "A");
	pn_buf_add_text(&body, "=1");
	assert_int_equal(parse(f, pn_buf_str(&body)), 1);
}

/* Lack of memory taken for a malformed message: the provider gives up. */
static void
test_form__tells_lack_of_memory_from_bad_input(void **state)
{
	struct fixture *f = *state;
	struct pn_arena *small = pn_arena_new(32);

	assert_non_null(small);
	assert_int_equal(
	    pn_form_parse(small, PN_STR("a=1&b=2"), &f->form, &f->error),
	    -ENOMEM);
	pn_arena_free(small);
}

/* A sample that Alipay would not have sent. */
static void
test_form__encodes_like_java(void **state)
{
	PN_CLEANUP(pn_buf_done) struct pn_buf out = pn_buf_init(1 << 16);
	struct fixture *f = *state;
	char all[256];

	pn_form_encode(&out, PN_STR("aZ09*-_. ~!+/=\xe4\0"));
	assert_string_equal(out.data, "aZ09*-_.+%7E%21%2B%2F%3D%E4%00");
	pn_buf_reset(&out);
	for (int i = 0; i < 256; i++)
		all[i] = (char)i;
	pn_buf_add_text(&out, "a=");
	pn_form_encode(&out, (struct pn_str){ all, sizeof(all) });
	assert_int_equal(parse(f, pn_buf_str(&out)), 0);
	assert_true(pn_str_equal(
	    pn_form_get(&f->form, "a"), (struct pn_str){ all, sizeof(all) }));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_form__decodes_exactly_once),
		TEST(test_form__sorts_names_as_bytes),
		TEST(test_form__refuses_ambiguous_bodies),
		TEST(test_form__stops_at_its_limits),
		TEST(test_form__tells_lack_of_memory_from_bad_input),
		TEST(test_form__encodes_like_java),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
