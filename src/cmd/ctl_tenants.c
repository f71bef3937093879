/*
 * `tenants list`: what the daemon serves, from the configuration alone: accounts
 * with their numbers, and each key that verifies them.
 *
 * A row of the table is a key, since keys are what ends and is rotated; an
 * account without any does not pass `config check`. Of secrets (APIv2) there is
 * the fingerprint that evidence names, never more.
 */
#include "ctl_list.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "paynotify/encode.h"
#include "paynotify/moment.h"

static const char *const titles[] = { "ACCOUNT", "NUMBER", "TEST", "KIND",
	"KEY", "FINGERPRINT", "ENDS" };

/* Of a fingerprint, in the table: as many as the metrics have. */
enum { SHOWN_DIGITS = 16 };

struct tenants {
	struct ctl_list list;
	const struct pn_conf_account *account;
	size_t keys; /* of this account so far */
};

/* mchid, or seller_id, or the first app_id. */
static struct pn_str
number_of(const struct pn_conf_account *account)
{
	if (strcmp(account->provider, "wechat") == 0)
		return pn_str_from(account->wechat.mchid.count > 0
				       ? account->wechat.mchid.values[0]
				       : "");
	if (account->alipay.seller_id.count > 0)
		return pn_str_from(account->alipay.seller_id.values[0]);
	return pn_str_from(account->alipay.app_id.count > 0
			       ? account->alipay.app_id.values[0]
			       : "");
}

/* What is said of one key. */
struct told {
	const char *kind;   /* "key", "certificate", "secret" */
	struct pn_str name; /* serial or id; maybe empty */
	char fingerprint[2 * PN_SHA256_BYTES + 1];
	int64_t ends_us;
};

/* A key's name and end are in its file, and the label beside it; the provider
 * has given only what verifies. */
static void
look_into(const struct pn_conf_files *files, struct told *told,
    const unsigned char *fingerprint, char *serial, size_t serial_bytes)
{
	for (size_t i = 0; i < files->count; i++) {
		struct pn_error error = { .text = "" };
		struct pn_public_key *key;

		if (pn_public_key_parse(
			pn_conf_file_text(&files->files[i]), &key, &error) < 0)
			continue;
		if (memcmp(pn_public_key_fingerprint(key), fingerprint,
			PN_SHA256_BYTES) == 0) {
			if (pn_public_key_serial(key) != NULL)
				told->kind = "certificate";
			(void)snprintf(serial, serial_bytes, "%s",
			    files->files[i].label != NULL
				? files->files[i].label
			    : pn_public_key_serial(key) != NULL
				? pn_public_key_serial(key)
				: "");
			told->name = pn_str_from(serial);
			told->ends_us = pn_public_key_not_after_us(key);
		}
		pn_public_key_unref(key);
	}
}

static void
add_json_key(struct pn_buf *out, const struct told *told, bool first)
{
	pn_buf_add_text(out, first ? "{" : ",{");
	ctl_add_member(out, "kind", pn_str_from(told->kind));
	ctl_add_member(out, "name", told->name);
	ctl_add_member(out, "fingerprint", pn_str_from(told->fingerprint));
	ctl_add_time_member(out, "ends_at", told->ends_us);
	pn_buf_add_char(out, '}');
}

static int
add_cells(const struct tenants *tenants, const struct told *told)
{
	const struct pn_conf_account *account = tenants->account;
	struct ctl_table *table = tenants->list.table;
	char text[2 * PN_TENANT_BYTES_MAX + 2];
	int r;

	(void)snprintf(
	    text, sizeof(text), "%s/%s", account->provider, account->tenant);
	r = ctl_table_cell(table, pn_str_from(text));
	r = r < 0 ? r : ctl_table_cell(table, number_of(account));
	r = r < 0 ? r
		  : ctl_table_cell(
			table, pn_str_from(account->test ? "yes" : "no"));
	r = r < 0 ? r : ctl_table_cell(table, pn_str_from(told->kind));
	r = r < 0 ? r : ctl_table_cell(table, told->name);
	r = r < 0 ? r
		  : ctl_table_cell(table,
			(struct pn_str){ told->fingerprint, SHOWN_DIGITS });
	return r < 0 ? r : ctl_table_time(table, told->ends_us);
}

static int
on_key(void *payload, const unsigned char *fingerprint, const char *pem)
{
	struct tenants *tenants = payload;
	const struct pn_conf_account *account = tenants->account;
	struct told told = { .kind = pem == NULL ? "secret" : "key",
		.ends_us = PN_MOMENT_NONE };
	char serial[256] = "";
	int r = 0;

	pn_hex_lower(fingerprint, PN_SHA256_BYTES, told.fingerprint);
	if (pem != NULL && strcmp(account->provider, "wechat") == 0) {
		look_into(&account->wechat.public_key, &told, fingerprint,
		    serial, sizeof(serial));
		look_into(&account->wechat.platform_cert, &told, fingerprint,
		    serial, sizeof(serial));
	} else if (pem != NULL) {
		look_into(&account->alipay.public_key, &told, fingerprint,
		    serial, sizeof(serial));
	}
	if (tenants->list.table == NULL) {
		add_json_key(&tenants->list.out, &told, tenants->keys == 0);
	} else {
		r = add_cells(tenants, &told);
		r = ctl_list_added(&tenants->list, r);
	}
	tenants->keys++;
	return r;
}

static void
add_strings(
    struct pn_buf *out, const char *name, const struct pn_conf_strings *strings)
{
	pn_buf_printf(out, ",\"%s\":[", name);
	for (size_t i = 0; i < strings->count; i++)
		pn_buf_printf(
		    out, "%s\"%s\"", i == 0 ? "" : ",", strings->values[i]);
	pn_buf_add_char(out, ']');
}

static void
add_json_head(struct pn_buf *out, const struct pn_conf_account *account)
{
	pn_buf_add_char(out, '{');
	ctl_add_member(out, "provider", pn_str_from(account->provider));
	ctl_add_member(out, "tenant", pn_str_from(account->tenant));
	ctl_add_bool(out, "test", account->test);
	ctl_add_member(out, "number", number_of(account));
	add_strings(out, "app_ids",
	    strcmp(account->provider, "wechat") == 0 ? &account->wechat.appid
						     : &account->alipay.app_id);
	pn_buf_add_text(out, ",\"keys\":[");
}

static int
list_account(struct tenants *tenants, const struct pn_conf_account *account)
{
	const struct pn_provider *provider =
	    pn_provider_find(pn_str_from(account->provider));
	struct pn_error error = { .text = "" };
	void *opened;
	int r;

	assert(provider != NULL);
	if (provider->account_open(account, &opened, &error) < 0) {
		ctl_complain("%s", error.text);
		return CTL_BAD_CONFIG;
	}
	tenants->account = account;
	tenants->keys = 0;
	if (tenants->list.table == NULL)
		add_json_head(&tenants->list.out, account);
	r = provider->account_keys(opened, on_key, tenants);
	provider->account_close(opened);
	if (tenants->list.table == NULL) {
		pn_buf_add_text(&tenants->list.out, "]}\n");
		r = ctl_list_added(&tenants->list, r);
	}
	return r < 0 ? tenants->list.exit : CTL_DONE;
}

int
ctl_tenants_list(struct ctl *ctl)
{
	struct tenants tenants = { .account = NULL };
	const struct pn_error none = { .text = "" };
	int r = ctl_list_open(&tenants.list, ctl, titles, PN_COUNT(titles));

	for (size_t i = 0; r == CTL_DONE && i < ctl->conf->account_count; i++)
		r = list_account(&tenants, &ctl->conf->accounts[i]);
	if (r == CTL_DONE)
		r = ctl_list_end(&tenants.list, ctl, 0, &none);
	if (r == CTL_DONE && ctl->conf->account_count == 0)
		(void)fprintf(stderr, "no accounts yet: add [alipay TENANT] "
				      "or [wechat TENANT]\n");
	ctl_list_done(&tenants.list);
	return r;
}
