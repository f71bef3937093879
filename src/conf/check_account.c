/*
 * What the options of an account must be together, and accounts beside each
 * other; check.c has what is not of accounts.
 */
#include "conf_internal.h"

/* What a provider's ids look like. Another one is accepted, since it is the
 * provider who gives them; but it is hardly meant, and every notification of the
 * real account would be refused. */
struct id_form {
	const char *key;
	const char *start; /* NULL: any */
	const char *other; /* start of another kind of id; NULL: none */
	size_t bytes_min, bytes_max;
	bool digits;
	const char *words;
};

static const struct id_form form_app_id = { "app_id", NULL, "2088", 16, 16,
	true, "16 digits, and only a seller's begin with 2088" };
static const struct id_form form_seller_id = { "seller_id", NULL, NULL, 16, 16,
	true, "16 digits such as 2088..." };
static const struct id_form form_mchid = { "mchid", NULL, NULL, 8, 10, true,
	"8 to 10 digits" };
static const struct id_form form_appid = { "appid", "w", NULL, 18, 18, false,
	"18 characters, wx and 16 more" };

static bool
id_has_form(const struct id_form *form, struct pn_str id)
{
	if (id.len < form->bytes_min || id.len > form->bytes_max ||
	    (form->start != NULL && !pn_str_starts(id, form->start)) ||
	    (form->other != NULL && pn_str_starts(id, form->other)))
		return false;
	for (size_t i = 0; form->digits && i < id.len; i++)
		if (id.data[i] < '0' || id.data[i] > '9')
			return false;
	return true;
}

static void
ids_check(struct conf_load *load, const struct conf_section *section,
    const struct id_form *form, const struct pn_conf_strings *ids)
{
	for (size_t i = 0; i < ids->count; i++)
		if (!id_has_form(form, pn_str_from(ids->values[i])))
			conf_warn(load, ids->places[i],
			    "[%s] %s \"%s\" is hardly right: it has %s;"
			    " notifications of any other are answered 403",
			    section->title, form->key, ids->values[i],
			    form->words);
}

void
conf_check_alipay(struct conf_load *load, const struct conf_section *section)
{
	const struct pn_conf_account *account = section->base;

	ids_check(load, section, &form_app_id, &account->alipay.app_id);
	ids_check(load, section, &form_seller_id, &account->alipay.seller_id);
	/* One Alipay account is one seller: with several applications in it,
	 * an app_id alone no longer says whose money a message is about. */
	if (account->alipay.app_id.count > 1 &&
	    account->alipay.seller_id.count == 0)
		conf_fail(load, section->place,
		    "[%s] seller_id is required with several app_ids",
		    section->title);
}

void
conf_check_wechat(struct conf_load *load, const struct conf_section *section)
{
	const struct pn_conf_account *account = section->base;
	const struct pn_conf_wechat *wechat = &account->wechat;
	bool keys = wechat->public_key.count + wechat->platform_cert.count > 0;
	bool secrets = wechat->api_v3_key_file.count > 0;

	ids_check(load, section, &form_mchid, &wechat->mchid);
	ids_check(load, section, &form_appid, &wechat->appid);
	if (keys && !secrets)
		conf_fail(load, section->place,
		    "[%s] api_v3_key_file is required with public_key and"
		    " platform_cert: it decrypts what they verify",
		    section->title);
	else if (secrets && !keys)
		conf_fail(load, section->place,
		    "[%s] public_key or platform_cert is required with"
		    " api_v3_key_file: it verifies the signatures",
		    section->title);
	else if (!secrets && wechat->api_v2_key_file.count == 0)
		conf_fail(load, section->place,
		    "[%s] no way to verify: APIv3 takes api_v3_key_file and"
		    " public_key or platform_cert, APIv2 api_v2_key_file",
		    section->title);
	/* The algorithm takes any, so an account of a test may have any. */
	for (size_t i = 0; i < wechat->api_v2_key_file.count; i++)
		if (wechat->api_v2_key_file.files[i].content.len !=
		    PN_WECHAT_KEY_BYTES)
			conf_warn(load, wechat->api_v2_key_file.files[i].place,
			    "[%s] api_v2_key_file has %zu bytes; a key of"
			    " the merchant platform has %d",
			    section->title,
			    wechat->api_v2_key_file.files[i].content.len,
			    PN_WECHAT_KEY_BYTES);
}

static bool
strings_meet(const struct pn_conf_strings *a, const struct pn_conf_strings *b)
{
	for (size_t i = 0; i < a->count; i++)
		for (size_t k = 0; k < b->count; k++)
			if (strcmp(a->values[i], b->values[k]) == 0)
				return true;
	return false;
}

/* Without any, each is taken. */
static bool
filters_meet(const struct pn_conf_strings *a, const struct pn_conf_strings *b)
{
	return a->count == 0 || b->count == 0 || strings_meet(a, b);
}

static bool
files_meet(const struct pn_conf_files *a, const struct pn_conf_files *b)
{
	for (size_t i = 0; i < a->count; i++)
		for (size_t k = 0; k < b->count; k++) {
			const struct pn_secret *x = &a->files[i].content;
			const struct pn_secret *y = &b->files[k].content;

			if (x->len == y->len &&
			    memcmp(x->data, y->data, x->len) == 0)
				return true;
		}
	return false;
}

/* Whether what one accepts may be accepted by the other. Equal numbers are no
 * fault by themselves: a seller may have a section of test keys beside. */
static bool
accounts_meet(const struct pn_conf_account *a, const struct pn_conf_account *b)
{
	if (strcmp(a->provider, b->provider) != 0)
		return false;
	if (strcmp(a->provider, "alipay") == 0)
		return strings_meet(&a->alipay.app_id, &b->alipay.app_id) &&
		       filters_meet(
			   &a->alipay.seller_id, &b->alipay.seller_id) &&
		       files_meet(&a->alipay.public_key, &b->alipay.public_key);
	if (strcmp(a->provider, "wechat") == 0)
		return strings_meet(&a->wechat.mchid, &b->wechat.mchid) &&
		       filters_meet(&a->wechat.appid, &b->wechat.appid) &&
		       (files_meet(
			    &a->wechat.public_key, &b->wechat.public_key) ||
			   files_meet(&a->wechat.platform_cert,
			       &b->wechat.platform_cert) ||
			   files_meet(&a->wechat.api_v2_key_file,
			       &b->wechat.api_v2_key_file));
	return false;
}

/* An event is one of its tenant: whoever sends a genuine notification to the
 * other path, too, makes a second event of one payment. */
void
conf_check_accounts(struct conf_load *load)
{
	const struct pn_conf *conf = load->conf;

	for (size_t k = 1; k < conf->account_count; k++)
		for (size_t i = 0; i < k; i++) {
			const struct pn_conf_account *a = &conf->accounts[i];
			const struct pn_conf_account *b = &conf->accounts[k];

			if (!accounts_meet(a, b))
				continue;
			conf_warn(load, b->place,
			    "[%s %s] has the %s and a key of [%s %s]: a"
			    " notification that is sent to both is an event of"
			    " each; one section will do, or tell them apart by"
			    " %s",
			    b->provider, b->tenant,
			    *b->provider == 'a' ? "app_id" : "mchid",
			    a->provider, a->tenant,
			    *b->provider == 'a' ? "seller_id" : "appid");
			break;
		}
}
