/*
 * What the sample files share: one sample as it was asked for, with its ids.
 */
#ifndef PN_WECHAT_SAMPLE_INTERNAL_H
#define PN_WECHAT_SAMPLE_INTERNAL_H

#include "wechat_internal.h"

enum pn_wechat_sample_kind {
	PN_WECHAT_SAMPLE_PAYMENT,
	PN_WECHAT_SAMPLE_FAILED,
	PN_WECHAT_SAMPLE_REFUND,
	PN_WECHAT_SAMPLE_OTHER,
};

struct pn_wechat_sample_job {
	const struct pn_wechat_account *account;
	const struct pn_sample *sample;
	struct pn_arena *arena;
	struct pn_error *error;

	enum pn_wechat_sample_kind kind;
	struct pn_str event;  /* "payment.succeeded" */
	struct pn_str status; /* of a refund: "SUCCESS" ... */
	struct pn_str oddity; /* empty: none */
	bool v2;
	enum pn_v2_sign_type sign_type;

	struct pn_str mchid, appid, sub_mchid;
	struct pn_str out_trade_no, transaction_id, refund_id, out_refund_no;
	int64_t amount_minor, refund_minor;
	int64_t happened_us; /* the same in every attempt */
	int64_t sent_us;
};

/* Whether this is the oddity that was asked for. */
bool
pn_wechat_sample_is(const struct pn_wechat_sample_job *job, const char *oddity);
/* len characters out of alphabet, made of seed, label and attempt only. In the
 * arena; data NULL: no memory. */
struct pn_str pn_wechat_sample_text(const struct pn_wechat_sample_job *job,
    const char *label, unsigned attempt, const char *alphabet, size_t len);

/* len digits that belong to the trade: made of label, number and the order that
 * was given; where none was, of the seed in its place. */
struct pn_str pn_wechat_sample_trade(const struct pn_wechat_sample_job *job,
    const char *label, int64_t number, size_t len);

#define PN_WECHAT_DIGITS "0123456789"
#define PN_WECHAT_ALNUM \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

/* Members of a JSON object, with the comma before them. */
void pn_wechat_sample_add_text(
    struct pn_buf *out, const char *name, struct pn_str value);
void
pn_wechat_sample_add_time(struct pn_buf *out, const char *name, int64_t us);
void pn_wechat_sample_add_open(struct pn_buf *out, const char *name);
/* The JSON that APIv3 encrypts. */
void pn_wechat_sample_plain(
    struct pn_buf *out, const struct pn_wechat_sample_job *job);

/* Body and headers of the request. */
int pn_wechat_sample_v3(
    struct pn_wechat_sample_job *job, struct pn_request *ret_request);
int pn_wechat_sample_v2(
    struct pn_wechat_sample_job *job, struct pn_request *ret_request);

#endif
