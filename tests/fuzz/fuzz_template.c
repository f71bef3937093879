/*
 * The template provider, behind its signature: no fuzzer makes an HMAC, so every
 * comparison holds (the linker wraps it), and the body is whatever comes. What
 * is accepted has one event under a key of its own; what is refused has none,
 * and a reason.
 */
#include "fuzz.h"

#include <assert.h>
#include <string.h>

#include "paynotify/moment.h"
#include "paynotify/provider.h"

extern const struct pn_provider pn_provider_template;
bool __wrap_pn_equal_constant_time(struct pn_str a, struct pn_str b);

bool
__wrap_pn_equal_constant_time(struct pn_str a, struct pn_str b)
{
	return a.len == b.len;
}

static void
check(const struct pn_notification *n)
{
	bool accepted = n->verdict == PN_VERDICT_ACCEPTED;

	assert(n->verified);
	assert(n->event_count == (accepted ? 1 : 0));
	assert(accepted == (n->reason[0] == '\0'));
	assert(
	    !accepted || pn_str_starts(n->events[0].key, "webhook:template:"));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char merchant[] = "M1", tenant[] = "shop1", zeros[65] = "";
	char *merchants[] = { merchant };
	unsigned char secret[] = "template-secret-0001";
	struct pn_conf_file file = { .content = { secret, 20 } };
	const struct pn_conf_account conf = { .tenant = tenant,
		.template = { .merchant = { .values = merchants, .count = 1 },
		    .secret_file = { .files = &file, .count = 1 } } };
	struct pn_header headers[] = {
		{ PN_STR("X-Template-Timestamp"), PN_STR("1772330405") },
		{ PN_STR("X-Template-Signature"), { zeros, 64 } },
	};
	const struct pn_request request = { .headers = headers,
		.header_count = 2,
		.body = { (const char *)data, size } };
	struct pn_arena *arena = pn_arena_new(PN_ARENA_BYTES_MAX);
	struct pn_notification n;
	struct pn_error error;
	void *account;
	int r;

	if (arena == NULL || size > PN_BODY_BYTES_MAX) {
		pn_arena_free(arena);
		return 0;
	}
	memset(zeros, '0', 64);
	r = pn_provider_template.account_open(&conf, &account, &error);
	assert(r == 0);
	r = pn_provider_template.verify(
	    account, &request, 1772330405 * PN_SECOND_US, arena, &n);
	assert(r == 0);
	check(&n);
	pn_provider_template.account_close(account);
	pn_arena_free(arena);
	return 0;
}
