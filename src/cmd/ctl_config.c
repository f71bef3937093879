/*
 * `config check`: what the daemon would say on its start, and nothing more: it
 * binds no address and asks no database.
 */
#include "ctl.h"

#include "load.h"

static void
add_ok_text(struct pn_buf *out, const struct pn_conf *conf)
{
	size_t accounts = conf->account_count, endpoints = conf->deliver_count;
	size_t routes = conf->guard_route_count;

	pn_buf_printf(out, "configuration OK: %zu account%s", accounts,
	    accounts == 1 ? "" : "s");
	if (endpoints > 0)
		pn_buf_printf(out, ", %zu endpoint%s", endpoints,
		    endpoints == 1 ? "" : "s");
	if (routes > 0)
		pn_buf_printf(out, ", %zu guarded route%s", routes,
		    routes == 1 ? "" : "s");
	pn_buf_add_char(out, '\n');
}

static void
add_json(struct pn_buf *out, const struct pn_conf *conf, const char *error)
{
	pn_buf_add_char(out, '{');
	ctl_add_bool(out, "ok", conf != NULL);
	ctl_add_member(out, "error", pn_str_from(error));
	if (conf != NULL) {
		ctl_add_number(out, "accounts", (int64_t)conf->account_count);
		ctl_add_number(out, "endpoints", (int64_t)conf->deliver_count);
		ctl_add_number(out, "routes", (int64_t)conf->guard_route_count);
		ctl_add_member(out, "warnings", pn_str_from(conf->warnings));
	}
	pn_buf_add_text(out, "}\n");
}

int
ctl_config_check(struct ctl *ctl)
{
	PN_CLEANUP(pn_conf_unrefp) struct pn_conf *conf = NULL;
	PN_CLEANUP(pn_buf_done)
	struct pn_buf out = pn_buf_init(CTL_OUTPUT_BYTES_MAX);
	struct pn_error error = { .text = "" };
	struct pn_accounts *accounts = NULL;
	int r = cmd_load(ctl->args.config, &conf, &accounts, &error);

	pn_accounts_unref(accounts);
	if (ctl->args.json)
		add_json(&out, conf, error.text);
	else if (r == 0)
		add_ok_text(&out, conf);
	if (r < 0)
		ctl_complain("%s", error.text);
	else if (conf->warnings != NULL)
		ctl_complain("%s", conf->warnings);
	return ctl_flush(&out) != CTL_DONE ? CTL_REFUSED
	       : r < 0                     ? CTL_BAD_CONFIG
					   : CTL_DONE;
}
