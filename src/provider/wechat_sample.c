/*
 * Signed requests for test accounts: what kind was asked for, and its ids.
 *
 * WeChat Pay has no sandbox that notifies, so this is how a merchant sees a
 * payment, a refund or a broken message arrive before the first customer does.
 *
 * Pure: every id and nonce is made of the seed (and the attempt, where WeChat
 * makes it anew for a retry), every time of what is passed in. The same sample
 * gives the same bytes. Where the order is given its transaction and its refunds
 * are made of that, so that a refund is one of the payment before it.
 *
 * Odd and signed right: bad-amount (the order's total is one fen more: a
 * conflict with the usual sample of the seed), negative-amount, other-mchid,
 * other-appid, undecryptable, partner, combined. What fails before: tampered,
 * wrong-key (a pure function has no second key at hand: the signature itself
 * is spoilt, unless the caller brings sign_key), no-sign, stale, probe,
 * no-headers, old-cert, unknown-serial.
 *
 * A retry keeps the envelope id, create_time and the encrypted text, and has a
 * new header time and nonce, signed anew, as captures of real retries show.
 */
#include "wechat_sample_internal.h"

#include <errno.h>

#include "paynotify/moment.h"

enum {
	WECHAT_SAMPLE_AMOUNT_MINOR = 8888,
	WECHAT_TRANSACTION_DIGITS = 23, /* behind "42000": 28 in all */
	WECHAT_REFUND_DIGITS = 26,      /* behind "503": 29 in all */
};

const char *const pn_wechat_sample_events[] = {
	"payment.succeeded",
	"payment.failed",
	"refund.succeeded",
	"refund.abnormal",
	"refund.closed",
	"wechat.complaint.create",
	"wechat.mchtransfer.bill.finished",
	"wechat.transaction.success",
	"wechat.v2.notice",
	NULL,
};

/* Which dialects have it. */
enum {
	IN_V3 = 1,
	IN_V2 = 2,
};
static const struct {
	const char *name;
	unsigned dialects;
} oddities[] = {
	{ "bad-amount", IN_V3 | IN_V2 },
	{ "negative-amount", IN_V3 | IN_V2 },
	{ "tampered", IN_V3 | IN_V2 },
	{ "wrong-key", IN_V3 | IN_V2 },
	{ "no-sign", IN_V3 | IN_V2 },
	{ "other-mchid", IN_V3 | IN_V2 },
	{ "other-appid", IN_V3 | IN_V2 },
	{ "undecryptable", IN_V3 | IN_V2 },
	{ "partner", IN_V3 | IN_V2 },
	{ "combined", IN_V3 },
	{ "stale", IN_V3 },
	{ "probe", IN_V3 },
	{ "no-headers", IN_V3 },
	{ "old-cert", IN_V3 },
	{ "unknown-serial", IN_V3 },
};
/* In the same order; a test compares the two. */
const struct pn_sample_oddity pn_wechat_sample_oddities[] = {
	{ "bad-amount", "one fen more than the usual sample: 422 if that one "
			"of this order came before, else 200" },
	{ "negative-amount", "an amount below zero, signed right: 400, and in "
			     "quarantine" },
	{ "tampered", "changed after signing: 401 (500 for a refund of APIv2, "
		      "which is encrypted and not signed)" },
	{ "wrong-key", "the signature of another key: 401" },
	{ "no-sign", "no signature: 400" },
	{ "other-mchid", "another merchant number: 403" },
	{ "other-appid", "another appid, of a payment or with dialect v2: 403 "
			 "if the account has any, else 200" },
	{ "undecryptable", "encrypted with another key: 500" },
	{ "partner", "nothing wrong, a service provider's, with sub_mchid: "
		     "200" },
	{ "combined", "nothing wrong, a payment of two sub-orders, with "
		      "dialect v3: 200" },
	{ "stale", "a Wechatpay-Timestamp beyond timestamp_tolerance, with "
		   "dialect v3: 401" },
	{ "probe", "a signature probe (WECHATPAY/SIGNTEST/), with dialect v3: "
		   "401" },
	{ "no-headers", "no Wechatpay-* headers, as behind a proxy that drops "
			"them, with dialect v3: 400" },
	{ "old-cert", "the serial of another key that the account has, which "
		      "needs two of them, with dialect v3: 401" },
	{ "unknown-serial", "the serial of a key that the account has not, "
			    "with dialect v3: 401" },
	{ NULL, NULL },
};
static_assert(PN_COUNT(oddities) + 1 == PN_COUNT(pn_wechat_sample_oddities),
    "both tables name the same oddities");

bool
pn_wechat_sample_is(const struct pn_wechat_sample_job *job, const char *oddity)
{
	return pn_str_is(job->oddity, oddity);
}

static struct pn_str
text_of(const struct pn_wechat_sample_job *job, struct pn_str seed,
    const char *alphabet, size_t len)
{
	const size_t letters = strlen(alphabet);
	unsigned char digest[PN_SHA256_BYTES];
	char *text = pn_arena_alloc(job->arena, len + 1);

	if (seed.data == NULL || text == NULL)
		return (struct pn_str){ NULL, 0 };
	for (size_t i = 0; i < len; i++) {
		size_t at = i % sizeof(digest);

		if (at == 0) {
			pn_sha256(seed, digest);
			seed = (struct pn_str){ (const char *)digest,
				sizeof(digest) };
		}
		text[i] = alphabet[digest[at] % letters];
	}
	return (struct pn_str){ text, len };
}

struct pn_str
pn_wechat_sample_text(const struct pn_wechat_sample_job *job, const char *label,
    unsigned attempt, const char *alphabet, size_t len)
{
	return text_of(job,
	    pn_arena_printf(job->arena, "wechat sample %llu %u %s",
		(unsigned long long)job->sample->seed, attempt, label),
	    alphabet, len);
}

struct pn_str
pn_wechat_sample_trade(const struct pn_wechat_sample_job *job,
    const char *label, int64_t number, size_t len)
{
	struct pn_str order = job->sample->out_trade_no;

	if (order.len == 0)
		return pn_wechat_sample_text(
		    job, label, (unsigned)number, PN_WECHAT_DIGITS, len);
	return text_of(job,
	    pn_arena_printf(job->arena, "wechat trade %s %lld " PN_STR_FMT,
		label, (long long)number, PN_STR_ARG(order)),
	    PN_WECHAT_DIGITS, len);
}

static int
refuse_event(const struct pn_wechat_sample_job *job)
{
	return pn_error_set(job->error, 1,
	    "no sample of event \"" PN_STR_FMT "\" in this dialect: there are "
	    "payment.succeeded, refund.succeeded, refund.abnormal, "
	    "refund.closed, with dialect v3 wechat.<event_type in lower case>, "
	    "with dialect v2 payment.failed and wechat.v2.notice",
	    PN_STR_ARG(job->event));
}

static int
kind_find(struct pn_wechat_sample_job *job)
{
	static const struct {
		const char *event;
		enum pn_wechat_sample_kind kind;
		const char *status;
	} kinds[] = {
		{ "payment.succeeded", PN_WECHAT_SAMPLE_PAYMENT, "" },
		{ "payment.failed", PN_WECHAT_SAMPLE_FAILED, "" },
		{ "refund.succeeded", PN_WECHAT_SAMPLE_REFUND, "SUCCESS" },
		{ "refund.abnormal", PN_WECHAT_SAMPLE_REFUND, "ABNORMAL" },
		{ "refund.closed", PN_WECHAT_SAMPLE_REFUND, "CLOSED" },
	};

	for (size_t i = 0; i < PN_COUNT(kinds); i++) {
		if (!pn_str_is(job->event, kinds[i].event))
			continue;
		job->kind = kinds[i].kind;
		job->status = pn_str_from(kinds[i].status);
		/* APIv3 notifies of paid orders only. */
		if (job->kind == PN_WECHAT_SAMPLE_FAILED && !job->v2)
			return refuse_event(job);
		return 0;
	}
	job->kind = PN_WECHAT_SAMPLE_OTHER;
	if (job->v2 ? pn_str_is(job->event, "wechat.v2.notice")
		    : pn_str_starts(job->event, "wechat.") &&
			  job->event.len > strlen("wechat.") &&
			  job->event.len <= PN_TYPE_BYTES_MAX &&
			  !pn_str_starts(job->event, "wechat.v2."))
		return 0;
	return refuse_event(job);
}

static bool
is_v2_only(struct pn_str event)
{
	return pn_str_is(event, "payment.failed") ||
	       pn_str_starts(event, "wechat.v2.");
}

static int
options_check(const struct pn_wechat_sample_job *job)
{
	if (job->sample->charset != NULL)
		return pn_error_set(
		    job->error, 1, "wechat has no charsets: it is all UTF-8");
	if (job->refund_minor > job->amount_minor)
		return pn_error_set(
		    job->error, 1, "a refund cannot be more than the amount");
	return 0;
}

static int
dialect_find(struct pn_wechat_sample_job *job)
{
	const struct pn_wechat_account *account = job->account;
	struct pn_str dialect = pn_str_from(job->sample->dialect);

	job->sign_type = account->options->v2_sign_type;
	if (dialect.len == 0)
		job->v2 = account->key_count == 0 ||
			  (account->v2_key_count > 0 && is_v2_only(job->event));
	else if (pn_str_is(dialect, "v2"))
		job->v2 = true;
	else if (pn_str_is(dialect, "v2-hmac")) {
		job->v2 = true;
		job->sign_type = PN_V2_SIGN_HMAC_SHA256;
	} else if (pn_str_is(dialect, "v2-md5")) {
		job->v2 = true;
		job->sign_type = PN_V2_SIGN_MD5;
	} else if (!pn_str_is(dialect, "v3"))
		return pn_error_set(job->error, 1,
		    "no dialect \"" PN_STR_FMT
		    "\": there are v3, v2, v2-md5, v2-hmac",
		    PN_STR_ARG(dialect));
	if (job->v2 && account->v2_key_count == 0)
		return pn_error_set(job->error, -EINVAL,
		    "the account has no api_v2_key_file to sign APIv2 with");
	if (!job->v2 && account->key_count == 0)
		return pn_error_set(job->error, -EINVAL,
		    "the account has no public_key or platform_cert, so no "
		    "APIv3");
	return 0;
}

/* Where an oddity has nothing to be odd about. */
static bool
oddity_fits(const struct pn_wechat_sample_job *job)
{
	bool is_refund = job->kind == PN_WECHAT_SAMPLE_REFUND;

	if (pn_wechat_sample_is(job, "combined"))
		return job->kind == PN_WECHAT_SAMPLE_PAYMENT;
	if (pn_wechat_sample_is(job, "bad-amount") ||
	    pn_wechat_sample_is(job, "negative-amount"))
		return job->kind != PN_WECHAT_SAMPLE_OTHER;
	/* In APIv3 only payments name an appid. */
	if (pn_wechat_sample_is(job, "other-appid"))
		return job->v2 ||
		       (!is_refund && job->kind != PN_WECHAT_SAMPLE_OTHER);
	/* In APIv2 a refund is encrypted and all else is signed. */
	if (job->v2 && pn_wechat_sample_is(job, "undecryptable"))
		return is_refund;
	if (job->v2 && (pn_wechat_sample_is(job, "no-sign") ||
			   pn_wechat_sample_is(job, "wrong-key")))
		return !is_refund;
	return true;
}

static int
oddity_check(const struct pn_wechat_sample_job *job)
{
	unsigned dialects = 0;

	if (job->oddity.len == 0)
		return 0;
	for (size_t i = 0; i < PN_COUNT(oddities); i++)
		if (pn_str_is(job->oddity, oddities[i].name))
			dialects = oddities[i].dialects;
	if ((dialects & (job->v2 ? IN_V2 : IN_V3)) != 0 && oddity_fits(job))
		return 0;
	if (dialects != 0)
		return pn_error_set(job->error, 1,
		    "the oddity \"" PN_STR_FMT "\" cannot be made of this "
		    "event in this dialect, %s: try payment.succeeded, or "
		    "the other dialect",
		    PN_STR_ARG(job->oddity), job->v2 ? "v2" : "v3");
	return pn_error_set(job->error, 1,
	    "no oddity \"" PN_STR_FMT "\": there are bad-amount, "
	    "negative-amount, tampered, wrong-key, no-sign, other-mchid, "
	    "other-appid, undecryptable, partner, and with dialect v3 "
	    "combined, stale, probe, no-headers, old-cert, unknown-serial",
	    PN_STR_ARG(job->oddity));
}

static int
ids_make(struct pn_wechat_sample_job *job)
{
	const struct pn_wechat_account *account = job->account;
	const struct pn_sample *sample = job->sample;
	struct pn_str transaction, refund, number;
	/* By the amount, so that parts of one order differ. */
	int64_t part = sample->out_trade_no.len > 0 ? job->refund_minor : 0;

	transaction = pn_wechat_sample_trade(
	    job, "transaction", 0, WECHAT_TRANSACTION_DIGITS);
	refund =
	    pn_wechat_sample_trade(job, "refund", part, WECHAT_REFUND_DIGITS);
	job->transaction_id = pn_arena_printf(
	    job->arena, "42000" PN_STR_FMT, PN_STR_ARG(transaction));
	job->refund_id =
	    pn_arena_printf(job->arena, "503" PN_STR_FMT, PN_STR_ARG(refund));
	job->out_trade_no = sample->out_trade_no;
	if (job->out_trade_no.len == 0)
		job->out_trade_no = pn_arena_printf(
		    job->arena, "T%016llX", (unsigned long long)sample->seed);
	/* One refund has one number of the merchant's. */
	number = pn_wechat_sample_trade(job, "out_refund_no", part, 16);
	job->out_refund_no =
	    pn_arena_printf(job->arena, "R" PN_STR_FMT, PN_STR_ARG(number));
	job->sub_mchid = PN_STR("1900009999");
	job->mchid = account->mchid;
	if (pn_wechat_sample_is(job, "other-mchid"))
		job->mchid = PN_STR("1999999999");
	/* Of none that there is, be it that of the sample configuration. */
	job->appid = PN_STR("wxffffffffffffffff");
	if (account->options->appid.count > 0 &&
	    !pn_wechat_sample_is(job, "other-appid"))
		job->appid = pn_str_from(account->options->appid.values[0]);
	if (transaction.data == NULL || refund.data == NULL ||
	    number.data == NULL || job->transaction_id.data == NULL ||
	    job->refund_id.data == NULL || job->out_trade_no.data == NULL ||
	    job->out_refund_no.data == NULL)
		return -ENOMEM;
	return 0;
}

/* now_us is when it happened, attempts come a second each later: the envelope
 * of a retry is the same and its header is not. Never so much later that it
 * leaves the window. */
static void
times_make(struct pn_wechat_sample_job *job)
{
	const struct pn_sample *sample = job->sample;
	int64_t tolerance_us = job->account->options->timestamp_tolerance_us;
	int64_t later_us = (int64_t)sample->attempt * PN_SECOND_US;

	if (later_us > tolerance_us / 2)
		later_us = tolerance_us / 2;
	/* WeChat tells whole seconds. */
	job->happened_us = sample->now_us - sample->now_us % PN_SECOND_US;
	job->sent_us = sample->now_us + later_us;
	if (pn_wechat_sample_is(job, "stale"))
		job->sent_us -= tolerance_us + 60 * PN_SECOND_US + later_us;
}

int
pn_wechat_sample(const void *account, const struct pn_sample *sample,
    struct pn_arena *arena, struct pn_request *ret_request,
    struct pn_error *ret_error)
{
	struct pn_wechat_sample_job job = {
		.account = account,
		.sample = sample,
		.arena = arena,
		.error = ret_error,
		.event = sample->event,
		.oddity = pn_str_from(sample->oddity),
		.amount_minor = sample->amount_minor,
		.refund_minor = sample->refund_minor,
	};
	struct pn_request request = { .method = PN_STR("POST") };
	int r;

	if (job.amount_minor == 0)
		job.amount_minor = WECHAT_SAMPLE_AMOUNT_MINOR;
	if (job.refund_minor == 0)
		job.refund_minor = job.amount_minor;
	/* The fen that makes it another order than the usual sample. */
	if (pn_wechat_sample_is(&job, "bad-amount"))
		job.amount_minor += job.amount_minor < INT64_MAX ? 1 : -1;
	r = options_check(&job);
	if (r == 0)
		r = dialect_find(&job);
	if (r == 0)
		r = kind_find(&job);
	if (r == 0)
		r = oddity_check(&job);
	if (r == 0)
		r = ids_make(&job);
	if (r != 0)
		return r;
	times_make(&job);
	request.path = pn_arena_printf(arena, "/notify/wechat/" PN_STR_FMT,
	    PN_STR_ARG(job.account->tenant));
	if (request.path.data == NULL)
		return -ENOMEM;
	r = job.v2 ? pn_wechat_sample_v2(&job, &request)
		   : pn_wechat_sample_v3(&job, &request);
	if (r == 0)
		*ret_request = request;
	return r;
}
