/*
 * The XML of WeChat v2. If these fail, a stranger reads the merchant's files
 * through an entity, or uses up its memory, before any signature is checked.
 */
#include "paynotify/xml.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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
parse(struct fixture *f, struct pn_str text)
{
	f->error.text[0] = '\0';
	return pn_xml_parse(f->arena, text, "xml", &f->form, &f->error);
}

static void
assert_refused(struct fixture *f, struct pn_str text)
{
	if (parse(f, text) != 1)
		fail_msg("accepted: " PN_STR_FMT, PN_STR_ARG(text));
	assert_true(f->error.text[0] != '\0');
}

static void
assert_value(struct fixture *f, const char *name, const char *value)
{
	struct pn_str got = pn_form_get(&f->form, name);

	assert_non_null(got.data);
	assert_int_equal(got.len, strlen(value));
	assert_memory_equal(got.data, value, got.len);
}

/* A value that is cut at a CDATA section, trimmed or unescaped twice. */
static void
test_xml__takes_text_and_cdata_as_they_stand(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(
	    parse(f,
		PN_STR(
		    "<?xml version=\"1.0\" encoding='utf-8'?>\n<xml a='>'>\r\n"
		    "<c><![CDATA[1<2]]>&amp;<![CDATA[ &amp; ]]>]]]</c>\n"
		    "<a> x\t</a><e/><f></f><g><![CDATA[]]></g>"
		    "<d z='1'>&lt;&gt;&quot;&apos;&#65;&#x4e2d;&amp;lt;</d>"
		    "<b>\xe4\xb8\xad</b> </xml>\n ")),
	    0);
	assert_int_equal(f->form.count, 7);
	assert_value(f, "c", "1<2& &amp; ]]]");
	assert_value(f, "a", " x\t");
	assert_value(f, "e", "");
	assert_value(f, "f", "");
	assert_value(f, "g", "");
	assert_value(f, "d", "<>\"'A\xe4\xb8\xad&lt;");
	assert_value(f, "b", "\xe4\xb8\xad");
	assert_true(pn_str_is(f->form.fields[0].name, "a"));
	assert_true(pn_str_is(f->form.fields[6].name, "g"));
	assert_int_equal(parse(f, PN_STR("<xml/>")), 0);
	assert_int_equal(f->form.count, 0);
	assert_int_equal(pn_xml_parse(f->arena, PN_STR("<root><a>1</a></root>"),
			     "root", &f->form, &f->error),
	    0);
	assert_value(f, "a", "1");
}

/* Whatever could load, expand or hide something. */
static void
test_xml__refuses_doctype_entities_and_instructions(void **state)
{
	static const char *const bad[] = {
		"<!DOCTYPE xml><xml/>",
		"<?xml version='1.0'?><!DOCTYPE xml [<!ENTITY e 'x'>]>"
		"<xml><a>&e;</a></xml>",
		"<!DOCTYPE xml SYSTEM 'http://127.0.0.1/x'><xml/>",
		"<!DOCTYPE xml [<!ENTITY % p SYSTEM 'file:///etc/hostname'> %p;"
		"]><xml/>",
		"<xml><!DOCTYPE a><a>1</a></xml>",
		"<xml><a>&undeclared;</a></xml>",
		"<xml a='&undeclared;'/>",
		"<xml><a>&#0;</a></xml>",
		"<xml><a>&#xd800;</a></xml>",
		"<xml><a>&amp</a></xml>",
		"<xml><?php x?><a>1</a></xml>",
		"<?php x?><xml/>",
		"<xml/><?php x?>",
		"<xml><!-- x --><a>1</a></xml>",
		"<xml><a>1<!-- x -->2</a></xml>",
		"<!-- <![CDATA[ --><xml><a>1</a></xml><!-- ]]> -->",
		"<xml><!ENTITY x 'y'></xml>",
		"<xml><xi:include href='/etc/hostname' parse='text'/></xml>",
		"<xml><a:b xmlns:a='urn:x'>1</a:b></xml>",
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < PN_COUNT(bad); i++)
		assert_refused(f, pn_str_from(bad[i]));
}

/* A document with two meanings, or half of one. */
static void
test_xml__refuses_what_is_not_one_flat_document(void **state)
{
	static const struct pn_str bad[] = {
		{ "", 0 },
		{ " ", 1 },
		{ "<xml", 4 },
		{ "<xml><a>1</a>", 13 },
		{ "<xml><a>1</xml>", 15 },
		{ "<xml><a>1</a></xml><xml/>", 25 },
		{ "<xml><a>1</a></xml>x", 20 },
		{ "<xml><a>1</a></xml>\0", 20 },
		{ "<xml><a>1</a></xml>]]>", 22 },
		{ "x<xml/>", 7 },
		{ "<root><a>1</a></root>", 21 },
		{ "<XML/>", 6 },
		{ "<xml><a><b>1</b></a></xml>", 26 },
		{ "<xml><a><xml>1</xml></a></xml>", 30 },
		{ "<xml><a>1</a><a>1</a></xml>", 27 },
		{ "<xml>text<a>1</a></xml>", 23 },
		{ "<xml><![CDATA[x]]></xml>", 24 },
		{ "<xml><a><![CDATA[x</a></xml>", 28 },
		{ "<xml><a>]]></a></xml>", 21 },
		{ "<xml><a>\x01</a></xml>", 19 },
		{ "<xml><a>1\0</a></xml>", 20 },
		{ "<xml><a b=1/></xml>", 19 },
		{ "<xml><a b='1' b='2'/></xml>", 27 },
		{ "{\"a\":1}", 7 },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < PN_COUNT(bad); i++)
		assert_refused(f, bad[i]);
}

/* The same bytes read in another encoding hide a DOCTYPE. */
static void
test_xml__refuses_other_encodings(void **state)
{
	static const struct pn_str bad[] = {
		{ "<?xml version='1.0' encoding='GBK'?><xml/>", 42 },
		{ "<?xml version=\"1.0\" encoding = \"UTF-16\"?><xml/>", 47 },
		{ "<?xml version='1.0' encoding='UTF-7'?><xml/>", 44 },
		{ "<?xml version='1.0' encoding=UTF-8?><xml/>", 42 },
		{ "\xef\xbb\xbf<xml/>", 9 },
		{ "\xff\xfe<\0x\0m\0l\0/\0>\0", 14 },
		{ "<\0x\0m\0l\0/\0>\0", 12 },
		{ "\0<\0x\0m\0l\0/\0>", 12 },
		{ "<xml><a>\xd6\xd0</a></xml>", 20 },
		{ "<xml><a>\xc0\xaf</a></xml>", 20 },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < PN_COUNT(bad); i++)
		assert_refused(f, bad[i]);
}

/* Work and memory without measure for a stranger. */
static void
test_xml__stops_at_its_limits(void **state)
{
	PN_CLEANUP(pn_buf_done) struct pn_buf text = pn_buf_init(1 << 20);
	struct fixture *f = *state;

	pn_buf_add_text(&text, "<xml>");
	for (int i = 0; i < PN_XML_FIELDS_MAX; i++)
		pn_buf_printf(&text, "<f%d>%d</f%d>", i, i, i);
	pn_buf_add_text(&text, "</xml>");
	assert_int_equal(parse(f, pn_buf_str(&text)), 0);
	assert_int_equal(f->form.count, PN_XML_FIELDS_MAX);
	assert_value(f, "f511", "511");
	text.len -= strlen("</xml>");
	pn_buf_add_text(&text, "<g/></xml>");
	assert_refused(f, pn_buf_str(&text));

	pn_buf_reset(&text);
	pn_buf_add_text(&text, "<xml><a b='>>'");
	for (int i = 0; i < 1000; i++)
		pn_buf_printf(&text, " c%d=''", i);
	pn_buf_add_text(&text, "/></xml>");
	assert_refused(f, pn_buf_str(&text));

	pn_buf_reset(&text);
	for (int i = 0; i < 10000; i++)
		pn_buf_add_text(&text, "<xml>");
	assert_refused(f, pn_buf_str(&text));

	pn_buf_reset(&text);
	pn_buf_add_text(&text, "<xml><a>");
	while (text.len < PN_XML_BYTES_MAX - strlen("</a></xml>"))
		pn_buf_add_char(&text, 'x');
	pn_buf_add_text(&text, "</a></xml>");
	assert_int_equal(text.len, PN_XML_BYTES_MAX);
	assert_int_equal(parse(f, pn_buf_str(&text)), 0);
	pn_buf_add_char(&text, '\n');
	assert_refused(f, pn_buf_str(&text));
}

/* Lack of memory taken for a malformed message: the provider gives up. */
static void
test_xml__tells_lack_of_memory_from_bad_input(void **state)
{
	const struct pn_str text = PN_STR("<xml><a>1</a><b>2</b></xml>");
	struct fixture *f = *state;
	int r = -ENOMEM;

	/* Every maximum up to the one that is enough. */
	for (size_t bytes = 0; r != 0; bytes += 16) {
		PN_CLEANUP(pn_arena_freep)
		struct pn_arena *small = pn_arena_new(bytes);

		assert_non_null(small);
		assert_true(bytes < 4096);
		r = pn_xml_parse(small, text, "xml", &f->form, &f->error);
		assert_true(r == 0 || r == -ENOMEM);
	}
}

/* libxml2 prints a stranger's text to the log of the service. */
static void
test_xml__prints_nothing(void **state)
{
	struct fixture *f = *state;
	FILE *file = tmpfile();
	int saved = dup(STDERR_FILENO);

	assert_non_null(file);
	assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
	(void)parse(f, PN_STR("<xml><a>&x;</b>"));
	(void)parse(f, PN_STR("<xml xmlns='::' xmlns:b='c d'><a>1</a></xml>"));
	(void)fflush(stderr);
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	assert_int_equal(lseek(fileno(file), 0, SEEK_END), 0);
	(void)close(saved);
	(void)fclose(file);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_xml__takes_text_and_cdata_as_they_stand),
		TEST(test_xml__refuses_doctype_entities_and_instructions),
		TEST(test_xml__refuses_what_is_not_one_flat_document),
		TEST(test_xml__refuses_other_encodings),
		TEST(test_xml__stops_at_its_limits),
		TEST(test_xml__tells_lack_of_memory_from_bad_input),
		TEST(test_xml__prints_nothing),
	};

	pn_xml_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
