/*
 * The providers that there are, one row each. Whoever adds one adds a row
 * here, a line in CMakeLists.txt and the option rows in src/conf; the name of
 * the row is the section name of the configuration and the path component.
 *
 * The verdict names are a contract of `paynotifyctl verify --json` and of the
 * receipts, so they stand in a table that is checked for completeness when it
 * is compiled.
 */
#include "paynotify/provider.h"

#include <assert.h>

#include "provider_internal.h"

static const struct pn_provider *const providers[] = {
	&pn_provider_alipay,
	&pn_provider_wechat,
#ifdef PN_TEMPLATE_PROVIDER
	&pn_provider_template,
#endif
};

static const char *const verdict_names[] = {
	[PN_VERDICT_ACCEPTED] = "accepted",
	[PN_VERDICT_MALFORMED] = "malformed",
	[PN_VERDICT_BAD_SIGNATURE] = "bad_signature",
	[PN_VERDICT_UNKNOWN_KEY] = "unknown_key",
	[PN_VERDICT_STALE] = "stale",
	[PN_VERDICT_UNDECRYPTABLE] = "undecryptable",
	[PN_VERDICT_WRONG_ACCOUNT] = "wrong_account",
	[PN_VERDICT_UNSUPPORTED] = "unsupported",
};
static_assert(PN_COUNT(verdict_names) == PN_VERDICT_COUNT,
    "every verdict has a name, or receipts could not tell it");

const char *
pn_verdict_name(enum pn_verdict verdict)
{
	assert(verdict >= 0 && verdict < PN_VERDICT_COUNT);

	return verdict_names[verdict];
}

const struct pn_provider *
pn_provider_find(struct pn_str name)
{
	for (size_t i = 0; i < PN_COUNT(providers); i++) {
		if (pn_str_is(name, providers[i]->name))
			return providers[i];
	}
	return NULL;
}

const struct pn_provider *
pn_provider_at(size_t index)
{
	return index < PN_COUNT(providers) ? providers[index] : NULL;
}
