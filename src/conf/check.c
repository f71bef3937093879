/*
 * What an account's options must be together, beyond what each row of the
 * option table says of its own option. Run on sections whose options were all
 * right, so that one slip is told once.
 */
#include "conf_internal.h"

void
conf_check_alipay(struct conf_load *load, const struct conf_section *section)
{
	const struct pn_conf_account *account = section->base;

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
}
