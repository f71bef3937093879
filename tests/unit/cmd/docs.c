/*
 * The sample configuration and paynotifyd.conf(5) against the option table, and
 * paynotifyctl(1) against the oddities: whoever adds one, or changes a default, is
 * told here to say so there.
 * Run in the top folder of the project.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "paynotify/conf_option_doc.h"
#include "paynotify/provider.h"

#include "ctl_print.h"

enum { DOCUMENT_BYTES_MAX = 1 << 20 };

/* The part of a document from the line that begins with head to the next line
 * that begins with next; with a NUL. Fails the test when there is none. */
static char *
part_of(struct pn_buf *document, const char *head, const char *next)
{
	char *from = strstr(document->data, head), *to;

	if (from == NULL)
		fail_msg("no \"%s\"", head + 1);
	to = strstr(from + strlen(head), next);
	return strndup(from, to == NULL ? strlen(from) : (size_t)(to - from));
}

static struct pn_buf
read_document(const char *path)
{
	struct pn_buf document = pn_buf_init(DOCUMENT_BYTES_MAX);

	pn_buf_add_char(&document, '\n');
	assert_int_equal(
	    ctl_file_read(path, DOCUMENT_BYTES_MAX - 2, &document), 0);
	pn_buf_add_char(&document, '\0');
	return document;
}

/* "guard NAME" stands there with a name: "[guard charges]". */
static void
sample_head(const char *section, char *head, size_t size)
{
	const char *name = strstr(section, "NAME");
	size_t len = name == NULL ? strlen(section) : (size_t)(name - section);

	(void)snprintf(head, size, "\n[%.*s", (int)len, section);
}

/* An operator who copies the sample must get what the table says. */
static void
test_ctl_docs__the_sample_has_every_option_and_its_default(void **state)
{
	struct pn_buf sample = read_document("src/conf/paynotifyd.conf.sample");

	(void)state;
	for (size_t i = 0; i < pn_conf_option_count(); i++) {
		struct pn_conf_option_doc o = pn_conf_option_doc(i);
		char head[64], commented[256], set[256];
		char *part;

		sample_head(o.section, head, sizeof(head));
		part = part_of(&sample, head, "\n[");
		(void)snprintf(set, sizeof(set), "\n%s = %s", o.key,
		    o.default_value == NULL ? "" : o.default_value);
		(void)snprintf(commented, sizeof(commented), "\n;%s = %s",
		    o.key, o.default_value == NULL ? "" : o.default_value);
		if (strstr(part, set) == NULL &&
		    (o.required || strstr(part, commented) == NULL))
			fail_msg("the sample lacks \"%s\" in [%s]", set + 1,
			    o.section);
		for (size_t j = 0;
		     o.default_values != NULL && o.default_values[j] != NULL;
		     j++) {
			(void)snprintf(commented, sizeof(commented),
			    "\n;%s = %s\n", o.key, o.default_values[j]);
			if (strstr(part, commented) == NULL)
				fail_msg("the sample lacks \"%s\" in [%s]",
				    commented + 1, o.section);
		}
		free(part);
	}
	pn_buf_done(&sample);
}

static void
test_ctl_docs__the_manual_has_every_option_and_its_default(void **state)
{
	struct pn_buf manual = read_document("src/cmd/man/paynotifyd.conf.5");

	(void)state;
	for (size_t i = 0; i < pn_conf_option_count(); i++) {
		struct pn_conf_option_doc o = pn_conf_option_doc(i);
		char head[64], item[128];
		char *part, *entry;
		struct pn_buf rest;

		(void)snprintf(head, sizeof(head), "\n.Ss [%s", o.section);
		part = part_of(&manual, head, "\n.Ss [");
		(void)snprintf(
		    item, sizeof(item), "\n.It Sy %s No = Ar ", o.key);
		rest = (struct pn_buf){ .data = part };
		entry = part_of(&rest, item, "\n.It ");
		if (o.default_value != NULL &&
		    strstr(entry, o.default_value) == NULL)
			fail_msg("the manual does not say that [%s] %s is %s "
				 "by default",
			    o.section, o.key, o.default_value);
		for (size_t j = 0;
		     o.default_values != NULL && o.default_values[j] != NULL;
		     j++)
			if (strstr(entry, o.default_values[j]) == NULL)
				fail_msg("the manual does not say that [%s] %s "
					 "is %s by default",
				    o.section, o.key, o.default_values[j]);
		if (o.repeatable && strstr(entry, "repeated") == NULL)
			fail_msg("the manual does not say that [%s] %s may be "
				 "repeated",
			    o.section, o.key);
		free(entry);
		free(part);
	}
	pn_buf_done(&manual);
}

/* An operator reloads and waits for what only a restart does, or restarts for
 * nothing. */
static void
test_ctl_docs__the_manual_says_what_a_reload_applies(void **state)
{
	struct pn_buf manual = read_document("src/cmd/man/paynotifyd.conf.5");
	char *part = part_of(&manual, "\n.Sh RELOADING", "\n.Sh ");

	(void)state;
	for (size_t i = 0; i < pn_conf_option_count(); i++) {
		struct pn_conf_option_doc o = pn_conf_option_doc(i);
		char item[64];

		(void)snprintf(item, sizeof(item), "\n.It Sy [%s]", o.section);
		if ((strstr(part, item) != NULL) != o.reloadable)
			fail_msg("the manual is wrong about [%s]", o.section);
	}
	free(part);
	pn_buf_done(&manual);
}

/* An oddity that is in one of the two only is one that nobody understands, or that
 * does not exist. */
static void
test_ctl_docs__the_manual_has_every_oddity(void **state)
{
	struct pn_buf manual = read_document("src/cmd/man/paynotifyctl.1");
	char *part = part_of(&manual, "\n.Sh ODDITIES", "\n.Sh ");
	const struct pn_provider *provider;
	size_t listed = 0, there = 0;

	(void)state;
	for (size_t i = 0; (provider = pn_provider_at(i)) != NULL; i++) {
		char head[64], item[64];
		char *own;
		struct pn_buf rest = { .data = part };

		(void)snprintf(head, sizeof(head), "\n.Ss %s", provider->name);
		own = part_of(&rest, head, "\n.Ss ");
		for (const struct pn_sample_oddity *o =
			 provider->sample_oddities;
		     o->name != NULL; o++, listed++) {
			assert_non_null(o->what);
			(void)snprintf(
			    item, sizeof(item), "\n.It Cm %s\n", o->name);
			if (strstr(own, item) == NULL)
				fail_msg("the manual lacks %s of %s", o->name,
				    provider->name);
		}
		free(own);
	}
	for (const char *at = part; (at = strstr(at, "\n.It Cm ")) != NULL;
	     at++)
		there++;
	assert_int_equal(there, listed);
	free(part);
	pn_buf_done(&manual);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    test_ctl_docs__the_sample_has_every_option_and_its_default),
		cmocka_unit_test(
		    test_ctl_docs__the_manual_has_every_option_and_its_default),
		cmocka_unit_test(
		    test_ctl_docs__the_manual_says_what_a_reload_applies),
		cmocka_unit_test(test_ctl_docs__the_manual_has_every_oddity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
