/*
 * `config check`: what the daemon would say on its start, and nothing more: it
 * binds no address and asks no database.
 */
#include "ctl.h"

#include "load.h"

static int
load(const char *path, size_t *ret_accounts, struct pn_error *ret_error)
{
	PN_CLEANUP(pn_conf_freep) struct pn_conf *conf = NULL;
	struct pn_ingest *ingest = NULL;
	int r = cmd_load(path, &conf, &ingest, ret_error);

	if (r < 0)
		return r;
	*ret_accounts = conf->account_count;
	pn_ingest_close(ingest);
	return 0;
}

int
ctl_config_check(struct ctl *ctl)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf out = pn_buf_init(CTL_OUTPUT_BYTES_MAX);
	struct pn_error error = { .text = "" };
	size_t accounts = 0;
	int r = load(ctl->args.config, &accounts, &error);

	if (ctl->args.json) {
		pn_buf_printf(&out, "{\"ok\":%s", r < 0 ? "false" : "true");
		ctl_add_member(&out, "error", pn_str_from(error.text));
		if (r == 0)
			ctl_add_number(&out, "accounts", (int64_t)accounts);
		pn_buf_add_text(&out, "}\n");
	} else if (r == 0) {
		pn_buf_printf(&out, "configuration OK: %zu account%s\n",
		    accounts, accounts == 1 ? "" : "s");
	}
	if (r < 0)
		ctl_complain("%s", error.text);
	return ctl_flush(&out) != CTL_DONE ? CTL_REFUSED
	       : r < 0                     ? CTL_BAD_CONFIG
					   : CTL_DONE;
}
