/*
 * What the files of the Alipay provider share. Not a contract; only
 * src/provider/alipay*.c and their unit tests include it.
 *
 *   alipay.c		the provider row: account, verify, reply
 *   alipay_sign.c	the string that is signed, the rules, the keys
 *   alipay_fields.c	documented parameters, their forms, hidden parameters
 *   alipay_text.c	UTF-8 and the payload
 *   alipay_event.c	notification to events
 *   alipay_sample.c	signed requests for test accounts
 */
#ifndef PN_ALIPAY_INTERNAL_H
#define PN_ALIPAY_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "paynotify/form.h"
#include "paynotify/key.h"
#include "paynotify/provider.h"

/* utc_timestamp has 13 digits: it lasts until 2286. */
#define PN_ALIPAY_MILLISECONDS_MAX UINT64_C(9999999999999)

struct pn_alipay {
	const struct pn_conf_account *conf; /* borrowed */
	enum pn_rsa_hash hash;       /* configured, never the message's */
	struct pn_public_key **keys; /* owned; at least one */
	size_t key_count;
	struct pn_private_key
	    *sample_key; /* owned; NULL: cannot sign samples */
};

/* Which fields are in the string that was signed. `sign` never is. */
struct pn_alipay_rule {
	bool sign_type; /* rule V2 keeps it, rule V1 drops it */
	bool empty;     /* "name=" of empty values is kept */
};

/* One notification. Both forms have the same names in the same order. */
struct pn_alipay_message {
	struct pn_form raw;  /* the bytes that were signed, decoded once */
	struct pn_form text; /* values as UTF-8; filled in once verified */
	struct pn_alipay_rule rule; /* which verified */
};

/* Whether a field takes part in the signed string. */
bool
pn_alipay_rule_signs(struct pn_alipay_rule rule, const struct pn_field *field);
/* "name=value&name=value" in the order of the form. data NULL: no memory. */
struct pn_str pn_alipay_canonical(struct pn_arena *arena,
    const struct pn_form *form, struct pn_alipay_rule rule);
/* Payment, refund and close notifications, which know rule V1 only. */
bool pn_alipay_is_trade(const struct pn_form *form);
/* 0: right, rule and key are set; 1: wrong, *ret_reason says why; -ENOMEM. */
int pn_alipay_verify_sign(const struct pn_alipay *account,
    const struct pn_form *form, struct pn_arena *arena,
    struct pn_alipay_rule *ret_rule, const struct pn_public_key **ret_key,
    const char **ret_reason) PN_MUSTCHECK;

/* Refuses hidden parameters and values that are not of their parameter's
 * form. 0; 1 and a reason; -ENOMEM. */
int pn_alipay_check_fields(const struct pn_alipay_message *message,
    struct pn_arena *arena, const char **ret_reason) PN_MUSTCHECK;
/* Position of a name in the sorted table of documented ones, or -1. */
int pn_alipay_documented(struct pn_str name);
size_t pn_alipay_documented_count(void);
const char *pn_alipay_documented_at(size_t index);

/* Fills message->text by the charset of the message. 0; -ENOMEM. */
int pn_alipay_to_text(struct pn_alipay_message *message,
    const struct pn_request *request, struct pn_arena *arena) PN_MUSTCHECK;
/* The fields as a JSON object, without sign. 0; -ENOMEM. */
int pn_alipay_payload(const struct pn_alipay_message *message,
    struct pn_arena *arena, struct pn_str *ret_payload) PN_MUSTCHECK;
/* The same, without what a retry makes anew. 0; -ENOMEM. */
int pn_alipay_witness(const struct pn_alipay_message *message,
    struct pn_arena *arena, struct pn_str *ret_witness) PN_MUSTCHECK;

/* Fills events, event_count, alarm. 0; 1 and a reason when the message tells
 * too little; -ENOMEM. */
int pn_alipay_events(const struct pn_alipay *account,
    const struct pn_alipay_message *message, struct pn_arena *arena,
    struct pn_notification *notification, const char **ret_reason) PN_MUSTCHECK;

int pn_alipay_sample(const void *account, const struct pn_sample *sample,
    struct pn_arena *arena, struct pn_request *ret_request,
    struct pn_error *ret_error) PN_MUSTCHECK;
extern const char *const pn_alipay_sample_events[];
extern const struct pn_sample_oddity pn_alipay_sample_oddities[];

#endif
