/*
 * What an account may be configured with, and hardly is on purpose: certificates
 * by their dates, a private key for samples that nothing here verifies.
 *
 * None of it keeps a daemon from its work, so none is an error: each is told
 * where it stands, with what to do about it. A key is only compared, and dates
 * only with the time that is passed in.
 */
#include "provider_internal.h"

#include <assert.h>
#include <stdio.h>

#include "paynotify/moment.h"

enum { DOUBT_BYTES_MAX = 1024 };

int
pn_doubt_certificate(const struct pn_doubts *doubts,
    const struct pn_conf_file *file, const char *option,
    const struct pn_public_key *key, const struct pn_certificate_words *words)
{
	int64_t from_us = pn_public_key_not_before_us(key);
	int64_t until_us = pn_public_key_not_after_us(key);
	const char *what = NULL, *then = NULL;
	char text[DOUBT_BYTES_MAX], when[PN_MOMENT_TEXT_BYTES];

	if (until_us == PN_MOMENT_NONE)
		return 0;
	if (until_us < doubts->now_us) {
		what = "ended";
		then = words->ended;
	} else if (from_us > doubts->now_us) {
		what = "is not valid before";
		then = "is it the right file, and the clock here right?";
	} else if (until_us - doubts->now_us < PN_CERTIFICATE_WARNING_US) {
		what = "ends";
		then = words->ends;
	}
	if (then == NULL)
		return 0;
	pn_moment_format_rfc3339(
	    from_us > doubts->now_us ? from_us : until_us, when);
	(void)snprintf(text, sizeof(text), "%s %s: the certificate %s %s: %s",
	    option, file->path, what, when, then);
	return doubts->visit(doubts->payload, &file->place, text);
}

int
pn_doubt_sample_key(const struct pn_doubts *doubts,
    const struct pn_conf_account *account, const char *then)
{
	const struct pn_conf_file *file = &account->test_private_key.files[0];
	char text[DOUBT_BYTES_MAX];

	assert(account->test_private_key.count > 0);
	(void)snprintf(text, sizeof(text),
	    "test_private_key %s belongs to no key of [%s %s]: %s", file->path,
	    account->provider, account->tenant, then);
	return doubts->visit(doubts->payload, &file->place, text);
}
