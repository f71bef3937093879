/*
 * `evidence verify`: the signature of what is stored, checked again.
 *
 * Everything it needs is in the database: the bytes that came, the headers that
 * were signed, and the public key by its fingerprint. What the provider itself
 * says of them is the proof that a payment was told, years later and wherever
 * the database is by then; so the configuration of today has no say, but for a
 * shared secret (WeChat's APIv2), which is nowhere else.
 *
 * What could be changed, and how it is found: body or headers, by the signature;
 * the key on record, by its fingerprint, which is of the key itself; the
 * fingerprint of a row, since then the signature is of another key. Whoever can
 * change all three together, with a key of his own, is found by who knows the
 * provider's keys: the fingerprints are in verifying_keys.
 *
 * An event that is named is compared too (ctl_evidence_event.c). Of --all only
 * the signed bytes are looked at: not what was made from them, and not whether
 * any are gone.
 */
#include "ctl_evidence.h"
#include "ctl_list.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "paynotify/encode.h"
#include "paynotify/evidence.h"
#include "paynotify/moment.h"

static const char *const titles[] = { "RECEIVED", "ACCOUNT", "OUT_TRADE_NO",
	"RECEIPT", "RESULT", "REASON" };

enum result { RIGHT, WRONG, NO_KEY, NOT_COMPARED, MISSING, RESULT_COUNT };
static const char *const result_names[] = {
	[RIGHT] = "right",
	[WRONG] = "wrong",
	[NO_KEY] = "not_verifiable",
	[NOT_COMPARED] = "not_comparable",
	[MISSING] = "missing",
};
static_assert(PN_COUNT(result_names) == RESULT_COUNT, "each has a name");

/* A few keys verify all there is: they are parsed once. */
enum { KEYS_KEPT = 16 };

struct verifying {
	struct ctl *ctl;
	struct ctl_list list;
	struct ctl_progress progress;
	struct pn_public_key *keys[KEYS_KEPT];
	size_t next_key;
	void **accounts; /* opened, one for each of the configuration */
	int64_t counts[RESULT_COUNT];
	bool unknown; /* an event was named that there is not */
};

/* -- what is verified -------------------------------------------------------- */

/* Characters up to U+00FF back to the bytes that they stand for. False: others
 * are among them. */
static bool
to_bytes(struct pn_str text, char *bytes, size_t *ret_len)
{
	size_t len = 0;

	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.data[i];

		if (c >= 0x80) {
			if ((c != 0xc2 && c != 0xc3) || ++i == text.len)
				return false;
			c = (unsigned char)((c & 3) << 6 |
					    ((unsigned char)text.data[i] &
						0x3f));
		}
		bytes[len++] = (char)c;
	}
	*ret_len = len;
	return true;
}

/* The request that the row was. 0; 1: its headers are not what is stored. */
static int
to_request(const struct pn_evidence_row *row, struct pn_arena *arena,
    struct pn_request *ret_request)
{
	struct pn_header *headers;
	struct pn_str rest;
	size_t count = 0;
	char *bytes = pn_arena_alloc(arena, row->headers.len + 1);

	headers = pn_arena_alloc(arena, PN_HEADER_COUNT_MAX * sizeof(*headers));
	if (bytes == NULL || headers == NULL)
		return -ENOMEM;
	rest.data = bytes;
	if (!to_bytes(row->headers, bytes, &rest.len))
		return 1;
	while (rest.len > 0) {
		struct pn_str line = pn_str_split(&rest, '\n');
		ptrdiff_t at = pn_str_find(line, PN_STR(": "));

		if (at <= 0 || count == PN_HEADER_COUNT_MAX)
			return 1;
		headers[count++] = (struct pn_header){
			.name = { line.data, (size_t)at },
			.value = { line.data + at + 2,
			    line.len - (size_t)at - 2 },
		};
	}
	*ret_request = (struct pn_request){
		.method = PN_STR("POST"),
		.headers = headers,
		.header_count = count,
		.body = row->body,
	};
	return 0;
}

static bool
is_key(const struct pn_public_key *key, struct pn_str fingerprint)
{
	return key != NULL && memcmp(pn_public_key_fingerprint(key),
				  fingerprint.data, PN_SHA256_BYTES) == 0;
}

/* *ret_key NULL: it is symmetric. NULL; or what is wrong with it. */
static const char *
find_key(struct verifying *v, const struct pn_evidence_row *row,
    struct pn_public_key **ret_key)
{
	struct pn_error error = { .text = "" };
	struct pn_public_key *key;

	*ret_key = NULL;
	if (row->key_fingerprint.len != PN_SHA256_BYTES)
		return "the fingerprint of its key has another length than any";
	if (!row->key_known)
		return "the key that verified it is not on record";
	if (row->key_pem.len == 0)
		return NULL;
	for (size_t i = 0; i < KEYS_KEPT; i++)
		if (is_key(v->keys[i], row->key_fingerprint)) {
			*ret_key = v->keys[i];
			return NULL;
		}
	if (pn_public_key_parse(row->key_pem, &key, &error) < 0)
		return "the key on record is not readable as one";
	if (!is_key(key, row->key_fingerprint)) {
		pn_public_key_unref(key);
		return "the key on record is another than its fingerprint says";
	}
	pn_public_key_unref(v->keys[v->next_key]);
	v->keys[v->next_key] = key;
	v->next_key = (v->next_key + 1) % KEYS_KEPT;
	*ret_key = key;
	return NULL;
}

/* By the tenant's own account first: the secret may be of another by now. */
static int
ask_provider(struct verifying *v, const struct pn_provider *provider,
    const struct pn_evidence_row *row, const struct pn_request *request,
    struct pn_public_key *key, struct pn_arena *arena, const char **ret_reason)
{
	const unsigned char *fingerprint =
	    (const unsigned char *)row->key_fingerprint.data;
	int r = provider->reverify(
	    request, key, NULL, fingerprint, arena, ret_reason);

	for (size_t i = 0;
	     r == PN_REVERIFY_NO_KEY && i < v->ctl->conf->account_count; i++)
		if (strcmp(v->ctl->conf->accounts[i].provider,
			provider->name) == 0)
			r = provider->reverify(request, key, v->accounts[i],
			    fingerprint, arena, ret_reason);
	return r;
}

/* What was signed is right: is the event what it says? enum result, or < 0. */
static int
judge_event(struct verifying *v, const struct pn_provider *provider,
    const struct pn_evidence_row *row, const struct pn_request *request,
    struct pn_arena *arena, const char **ret_reason)
{
	const struct pn_conf *conf = v->ctl->conf;

	for (size_t i = 0; i < conf->account_count; i++) {
		const struct pn_conf_account *account = &conf->accounts[i];
		int r;

		if (!pn_str_is(row->provider, account->provider) ||
		    !pn_str_is(row->tenant, account->tenant))
			continue;
		r = ctl_evidence_compare(v->ctl->query, provider,
		    v->accounts[i], row, request, arena, ret_reason);
		return r == CTL_EVENT_SAME      ? RIGHT
		       : r == CTL_EVENT_DIFFERS ? WRONG
		       : r == CTL_EVENT_UNREAD  ? NOT_COMPARED
						: r;
	}
	*ret_reason = "its signature is right, but the configuration has not "
		      "its account, by which the event is compared";
	return NOT_COMPARED;
}

/* enum result, or < 0. */
static int
judge(struct verifying *v, const struct pn_evidence_row *row,
    struct pn_arena *arena, const char **ret_reason)
{
	const struct pn_provider *provider = pn_provider_find(row->provider);
	struct pn_public_key *key;
	struct pn_request request;
	int r;

	if (row->receipt_id.len == 0) {
		*ret_reason = "its evidence is not kept any more";
		return MISSING;
	}
	if (provider == NULL) {
		*ret_reason = "this version does not know the provider";
		return WRONG;
	}
	*ret_reason = find_key(v, row, &key);
	if (*ret_reason != NULL)
		return WRONG;
	r = to_request(row, arena, &request);
	if (r > 0) {
		*ret_reason = "its headers are not as they are stored";
		return WRONG;
	}
	if (r == 0)
		r = ask_provider(
		    v, provider, row, &request, key, arena, ret_reason);
	if (r == PN_REVERIFY_NO_KEY) {
		*ret_reason = "the configuration has not the secret that is "
			      "said to have signed it";
		return NO_KEY;
	}
	return r == 0 && row->event_id.len > 0
		   ? judge_event(v, provider, row, &request, arena, ret_reason)
		   : r;
}
static_assert((int)WRONG == (int)PN_REVERIFY_WRONG, "judge() takes it over");

/* -- what is told ------------------------------------------------------------ */

static void
add_json(struct pn_buf *out, const struct pn_evidence_row *row,
    enum result result, const char *reason)
{
	char hex[2 * PN_SHA256_BYTES + 1];

	pn_buf_add_char(out, '{');
	ctl_add_member(out, "result", pn_str_from(result_names[result]));
	ctl_add_member(out, "reason", pn_str_from(reason));
	ctl_add_member(out, "receipt_id", row->receipt_id);
	ctl_add_time_member(out, "received_at", row->received_at_us);
	ctl_add_member(out, "provider", row->provider);
	ctl_add_member(out, "tenant", row->tenant);
	ctl_add_member(out, "out_trade_no", row->out_trade_no);
	ctl_add_member(out, "event_id", row->event_id);
	if (row->key_fingerprint.len == PN_SHA256_BYTES) {
		pn_hex_lower(row->key_fingerprint.data, PN_SHA256_BYTES, hex);
		ctl_add_member(out, "key_fingerprint", pn_str_from(hex));
	}
	pn_buf_add_text(out, "}\n");
}

static int
add_cells(struct ctl_table *table, const struct pn_evidence_row *row,
    enum result result, const char *reason)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf account = pn_buf_init(CTL_OUTPUT_BYTES_MAX);
	int r = ctl_table_time(table, row->received_at_us);

	pn_buf_printf(&account, PN_STR_FMT "/" PN_STR_FMT,
	    PN_STR_ARG(row->provider), PN_STR_ARG(row->tenant));
	r = r < 0 ? r : ctl_table_cell(table, pn_buf_str(&account));
	r = r < 0 ? r : ctl_table_cell(table, row->out_trade_no);
	r = r < 0 ? r : ctl_table_cell(table, row->receipt_id);
	r = r < 0 ? r
		  : ctl_table_cell(table, pn_str_from(result_names[result]));
	return r < 0 ? r : ctl_table_cell(table, pn_str_from(reason));
}

static int
verify_row(const struct pn_evidence_row *row, void *payload)
{
	PN_CLEANUP(pn_arena_freep)
	struct pn_arena *arena = pn_arena_new(PN_ARENA_BYTES_MAX);
	struct verifying *v = payload;
	const char *reason = "";
	int result = arena == NULL ? -ENOMEM : judge(v, row, arena, &reason);
	int r = 0;

	if (result < 0) {
		ctl_complain(
		    "the event could not be read: %s", ctl_fault_text(result));
		v->list.exit = CTL_REFUSED;
		return result;
	}
	v->counts[result]++;
	ctl_progress_set(&v->progress, v->progress.done + 1);
	if (result == RIGHT)
		return 0;
	if (v->list.table == NULL)
		add_json(&v->list.out, row, (enum result)result, reason);
	else
		r = add_cells(v->list.table, row, (enum result)result, reason);
	ctl_progress_hide(&v->progress);
	return ctl_list_added(&v->list, r);
}

static void
add_summary(const struct verifying *v, struct pn_buf *out)
{
	const int64_t *n = v->counts;

	if (v->list.table == NULL) {
		pn_buf_add_char(out, '{');
		for (int i = 0; i < RESULT_COUNT; i++)
			ctl_add_number(out, result_names[i], n[i]);
		pn_buf_add_text(out, "}\n");
		return;
	}
	pn_buf_printf(out, "%lld right, %lld wrong", (long long)n[RIGHT],
	    (long long)n[WRONG]);
	if (n[MISSING] > 0)
		pn_buf_printf(
		    out, ", %lld not kept any more", (long long)n[MISSING]);
	if (n[NO_KEY] > 0)
		pn_buf_printf(out,
		    ", %lld not verifiable without the secret that signed "
		    "them",
		    (long long)n[NO_KEY]);
	if (n[NOT_COMPARED] > 0)
		pn_buf_printf(out, ", %lld not comparable with their events",
		    (long long)n[NOT_COMPARED]);
	pn_buf_add_char(out, '\n');
}

/* -- all or some ------------------------------------------------------------- */

static int
query_all(struct verifying *v, struct pn_error *error)
{
	const struct pn_evidence_filter filter = {
		.tenant = v->ctl->args.tenant,
		.since_us = v->ctl->args.since_us,
	};
	int64_t total = 0;
	int r = 0;

	/* Statistics tell of all there is, and of no part of it. */
	if (filter.tenant == NULL && filter.since_us == PN_MOMENT_NONE)
		r = pn_query_evidence_estimate(v->ctl->query, &total, error);
	if (r < 0)
		return r;
	ctl_progress_start(&v->progress, v->ctl, "evidence", total, true);
	return pn_query_evidence(v->ctl->query, &filter, verify_row, v, error);
}

static int
query_named(struct verifying *v, struct pn_error *error)
{
	const struct ctl_args *args = &v->ctl->args;
	int r = 0;

	ctl_progress_start(&v->progress, v->ctl, "evidence",
	    (int64_t)args->operand_count, true);
	for (size_t i = 0; r == 0 && i < args->operand_count; i++) {
		r = pn_query_evidence_of(v->ctl->query, args->operands[i],
		    args->tenant, verify_row, v, error);
		if (r <= 0)
			continue;
		r = 0; /* the others are wanted all the same */
		v->unknown = true;
		ctl_progress_hide(&v->progress);
		ctl_complain("there is no event \"%s\"; `" CTL_NAME
			     " events list -c %s` shows those there are",
		    args->operands[i], args->config);
	}
	return r;
}

static int
run(struct verifying *v)
{
	struct pn_error error = { .text = "" };
	bool named = v->ctl->args.operand_count > 0;
	int r = named ? query_named(v, &error) : query_all(v, &error);

	ctl_progress_hide(&v->progress);
	r = ctl_list_end(&v->list, v->ctl, r, &error);
	if (r != CTL_DONE)
		return r;
	add_summary(v, &v->list.out);
	r = ctl_flush(&v->list.out);
	for (int i = RIGHT + 1; i < RESULT_COUNT; i++)
		if (v->counts[i] > 0)
			r = CTL_REFUSED;
	if (v->unknown)
		return CTL_REFUSED;
	return r;
}

static int
open_accounts(struct verifying *v)
{
	const struct pn_conf *conf = v->ctl->conf;
	struct pn_error error = { .text = "" };

	v->accounts = calloc(conf->account_count + 1, sizeof(*v->accounts));
	if (v->accounts == NULL) {
		ctl_complain("out of memory");
		return CTL_REFUSED;
	}
	for (size_t i = 0; i < conf->account_count; i++) {
		const struct pn_conf_account *account = &conf->accounts[i];
		const struct pn_provider *provider =
		    pn_provider_find(pn_str_from(account->provider));

		assert(provider != NULL);
		if (provider->account_open(account, &v->accounts[i], &error) <
		    0) {
			ctl_complain("%s", error.text);
			return CTL_BAD_CONFIG;
		}
	}
	return CTL_DONE;
}

static void
close_accounts(struct verifying *v)
{
	const struct pn_conf *conf = v->ctl->conf;

	for (size_t i = 0; v->accounts != NULL && i < conf->account_count; i++)
		pn_provider_find(pn_str_from(conf->accounts[i].provider))
		    ->account_close(v->accounts[i]);
	free(v->accounts);
	for (size_t i = 0; i < KEYS_KEPT; i++)
		pn_public_key_unref(v->keys[i]);
}

int
ctl_evidence_check(const struct ctl *ctl)
{
	const struct ctl_args *args = &ctl->args;
	bool all = args->all || args->since_us != PN_MOMENT_NONE;

	if (args->operand_count == 0 && !all)
		return ctl_usage(ctl->command,
		    "it needs events (ID, KEY or SEQ), or --all, or --since");
	if (args->operand_count > 0 && all)
		return ctl_usage(ctl->command,
		    "either events, or --all and --since, not both");
	return CTL_DONE;
}

int
ctl_evidence_verify(struct ctl *ctl)
{
	struct verifying v = { .ctl = ctl };
	int r = ctl_list_open(&v.list, ctl, titles, PN_COUNT(titles));

	if (r == CTL_DONE)
		r = open_accounts(&v);
	if (r == CTL_DONE)
		r = run(&v);
	close_accounts(&v);
	ctl_list_done(&v.list);
	return r;
}
