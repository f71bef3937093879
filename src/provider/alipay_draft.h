/*
 * A sample in the making: shared by alipay_sample.c, which decides, signs and
 * encodes, and alipay_draft.c, which knows the fields of each event.
 */
#ifndef PN_ALIPAY_DRAFT_H
#define PN_ALIPAY_DRAFT_H

#include "alipay_internal.h"

enum {
	DRAFT_FIELDS_MAX = 48,
	YUAN_TEXT_BYTES = 32,
};

enum pn_alipay_shape {
	SHAPE_PAID,
	SHAPE_FINISHED,
	SHAPE_PENDING,
	SHAPE_CLOSED,
	SHAPE_REFUND,
	SHAPE_SIGN,
	SHAPE_UNSIGN,
	SHAPE_FUND,
	SHAPE_SERVICE,
};

struct pn_alipay_kind {
	const char *event;
	enum pn_alipay_shape shape;
	bool trade; /* has an order and an amount */
};

enum pn_alipay_oddity {
	ODDITY_NONE,
	ODDITY_BAD_AMOUNT,
	ODDITY_TAMPERED,
	ODDITY_WRONG_KEY,
	ODDITY_NO_SIGN,
	ODDITY_OTHER_APP,
	ODDITY_OTHER_SELLER,
	ODDITY_SHA1,
	ODDITY_GBK,
	ODDITY_DUPLICATE_FIELD,
	ODDITY_COUNT
};

struct pn_alipay_draft {
	const struct pn_alipay *account;
	const struct pn_sample *sample;
	const struct pn_alipay_kind *kind;
	enum pn_alipay_oddity oddity;
	struct pn_arena *arena;
	struct pn_field fields[DRAFT_FIELDS_MAX];
	size_t count;
	bool failed; /* memory was out; sticks */
	struct pn_str out_trade_no;
	int64_t total_fen, refund_fen;
	char total[YUAN_TEXT_BYTES], refund[YUAN_TEXT_BYTES];
};

/* Appends; value.data NULL counts as no memory. */
void pn_alipay_draft_add(
    struct pn_alipay_draft *draft, const char *name, struct pn_str value);
/* Decimal digits from the seed behind a fixed start, len in all. */
struct pn_str pn_alipay_draft_digits(struct pn_alipay_draft *draft,
    const char *start, size_t len, uint64_t salt);
/* All fields of the draft's kind but sign_type and sign. */
void pn_alipay_draft_fill(struct pn_alipay_draft *draft);

#endif
