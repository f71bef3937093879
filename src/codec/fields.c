/*
 * Fields in the order of their names.
 *
 * Sorting serves three readers: the canonical string of Alipay and of WeChat
 * v2 wants the fields in byte order, a look-up is a binary search, and a name
 * that occurs twice stands next to itself. Byte order is what the providers
 * mean by ASCII order; a locale would put "_" elsewhere.
 *
 * It says nothing about empty values: whether they count is for the provider.
 */
#include "fields.h"

#include <assert.h>
#include <stdlib.h>

static int
compare(const void *left, const void *right)
{
	const struct pn_field *a = left, *b = right;

	return pn_str_compare(a->name, b->name);
}

int
pn_fields_sort(struct pn_form *form, struct pn_error *ret_error)
{
	struct pn_field *fields = form->fields;

	if (form->count < 2)
		return 0;
	qsort(fields, form->count, sizeof(fields[0]), compare);
	for (size_t i = 1; i < form->count; i++) {
		int order = compare(&fields[i - 1], &fields[i]);

		assert(order <= 0);
		if (order == 0)
			return pn_error_set(ret_error, 1,
			    "field \"" PN_STR_FMT "\" occurs twice",
			    PN_STR_ARG(fields[i].name));
	}
	return 0;
}

struct pn_str
pn_form_get(const struct pn_form *form, const char *name)
{
	const struct pn_field wanted = { .name = pn_str_from(name) };
	const struct pn_field *found =
	    form->count == 0 ? NULL
			     : bsearch(&wanted, form->fields, form->count,
				   sizeof(wanted), compare);

	return found == NULL ? (struct pn_str){ NULL, 0 } : found->value;
}
