/*
 * What the files of src/provider share among themselves: the rows of the
 * registry. Not a contract; no other folder includes it.
 */
#ifndef PN_PROVIDER_INTERNAL_H
#define PN_PROVIDER_INTERNAL_H

#include "paynotify/provider.h"

/* doubts.c: each calls visit for what is doubtful, at its place. */
struct pn_certificate_words {
	const char *ended; /* what it means that it did, and what to do */
	const char *ends;  /* that it does soon; NULL: nothing */
};
int pn_doubt_certificate(const struct pn_doubts *doubts,
    const struct pn_conf_file *file, const char *option,
    const struct pn_public_key *key,
    const struct pn_certificate_words *words) PN_MUSTCHECK;
/* The account's test_private_key, which is there, belongs to none of its keys:
 * what then. */
int pn_doubt_sample_key(const struct pn_doubts *doubts,
    const struct pn_conf_account *account, const char *then) PN_MUSTCHECK;

extern const struct pn_provider pn_provider_alipay;
extern const struct pn_provider pn_provider_template;
extern const struct pn_provider pn_provider_wechat;

#endif
