/*
 * What `paynotifyd` refuses to start with, `paynotifyd --check` and
 * `paynotifyctl config check` say by one function, or they would come to differ.
 *
 * The configuration's own layer knows options as text and number; what is an
 * address is for http to say, what is a connection string for store, what is a
 * key for the providers, what is an endpoint for deliver. They come together
 * only here.
 *
 * It deliberately opens nothing: no address is bound, no database asked.
 */
#include "load.h"

#include "paynotify/admin.h"
#include "paynotify/deliver.h"
#include "paynotify/guard.h"
#include "paynotify/server.h"
#include "paynotify/store.h"

/* A default has no place, and is right. */
static int
at(struct pn_conf_place place, int r, const char *option,
    struct pn_error *error)
{
	if (place.file == NULL)
		return pn_error_prefix(error, r, "%s: ", option);
	return pn_error_prefix(
	    error, r, "%s:%d: %s: ", place.file, place.line, option);
}

static int
check_listen(const struct pn_conf_strings *listen, struct pn_error *ret_error)
{
	for (size_t i = 0; i < listen->count; i++) {
		int r = pn_listen_check(listen->values[i], false, ret_error);

		if (r < 0)
			return at(listen->places == NULL
				      ? (struct pn_conf_place){ NULL, 0 }
				      : listen->places[i],
			    r, "listen", ret_error);
	}
	return 0;
}

int
cmd_check_database(const struct pn_conf *conf, struct pn_error *ret_error)
{
	const struct pn_conf_database *database = &conf->database;
	int r = pn_store_dsn_check(database->dsn, ret_error);

	if (r < 0)
		return at(database->dsn_place, r, "dsn", ret_error);
	if (database->admin_dsn == NULL)
		return 0;
	r = pn_store_dsn_check(database->admin_dsn, ret_error);
	if (r < 0)
		return at(database->admin_dsn_place, r, "admin_dsn", ret_error);
	return 0;
}

int
cmd_load(const char *path, struct pn_conf **ret_conf,
    struct pn_accounts **ret_accounts, struct pn_error *ret_error)
{
	PN_CLEANUP(pn_conf_unrefp) struct pn_conf *conf = NULL;
	int r = pn_conf_load(path, NULL, &conf, ret_error);

	if (r == 0)
		r = check_listen(&conf->server.listen, ret_error);
	if (r == 0)
		r = pn_admin_check(conf, ret_error);
	if (r == 0)
		r = check_listen(&conf->guard.listen, ret_error);
	if (r == 0)
		r = cmd_check_database(conf, ret_error);
	if (r == 0)
		r = pn_guard_check(conf, ret_error);
	if (r == 0)
		r = pn_deliver_check(conf, ret_error);
	if (r == 0)
		r = pn_accounts_open(conf, ret_accounts, ret_error);
	if (r < 0)
		return r;
	*ret_conf = conf;
	conf = NULL; /* handed over */
	return 0;
}

void
cmd_apply_log(const struct pn_conf_log *log)
{
	pn_log_set_format(log->format);
	pn_log_configure(log->level, log->debug);
}
