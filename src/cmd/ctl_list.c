/*
 * What all lists share: where their rows go, how many there are, and what is said
 * when there are none or more than were asked for.
 *
 * A command gives its rows as cells or as JSON, by whether there is a table; the
 * rest is here, so that no list can forget to say that it was cut.
 */
#include "ctl_list.h"

#include <assert.h>
#include <errno.h>

enum { BLOCK_ROWS = 500 };

int
ctl_list_open(struct ctl_list *list, const struct ctl *ctl,
    const char *const *titles, size_t columns)
{
	*list = (struct ctl_list){ .out = pn_buf_init(CTL_OUTPUT_BYTES_MAX) };
	if (ctl->args.json)
		return CTL_DONE;
	list->table = ctl_table_new(titles, columns);
	if (list->table != NULL)
		return CTL_DONE;
	ctl_complain("out of memory");
	return CTL_REFUSED;
}

void
ctl_list_done(struct ctl_list *list)
{
	ctl_table_free(list->table);
	list->table = NULL;
	pn_buf_done(&list->out);
}

int64_t
ctl_list_limit(const struct ctl *ctl)
{
	/* A program that reads JSON would not see that some are missing. */
	if (ctl->args.limit == UINT64_MAX)
		return ctl->args.json ? INT64_MAX : CTL_LIST_LIMIT;
	return ctl->args.limit == 0 ? INT64_MAX : (int64_t)ctl->args.limit;
}

static int
flush(struct ctl_list *list)
{
	if (list->table != NULL)
		ctl_table_print(list->table, false, &list->out);
	return ctl_flush(&list->out);
}

int
ctl_list_added(struct ctl_list *list, int r)
{
	assert(list->exit == CTL_DONE);
	list->rows++;
	if (r < 0) {
		ctl_complain("out of memory: ask for less with --limit");
		list->exit = CTL_REFUSED;
	} else if (list->rows % BLOCK_ROWS == 0) {
		list->exit = flush(list);
	}
	return list->exit == CTL_DONE ? 0 : -EIO;
}

int
ctl_list_end(struct ctl_list *list, const struct ctl *ctl, int r,
    const struct pn_error *error)
{
	if (list->exit != CTL_DONE)
		return list->exit;
	if (r < 0)
		return ctl_database_complain(ctl->conf, ctl->dsn, r, error);
	return flush(list);
}

void
ctl_list_say_how_many(const struct ctl_list *list, const struct ctl *ctl,
    const char *what, const char *which, bool filtered)
{
	if (list->table != NULL && list->rows == 0)
		(void)fprintf(
		    stderr, "no %s%s\n", what, filtered ? " match" : " yet");
	if (list->table != NULL && ctl->args.limit == UINT64_MAX &&
	    list->rows == CTL_LIST_LIMIT)
		(void)fprintf(stderr,
		    "these are the %s %d; --limit N shows more, --limit 0 "
		    "all\n",
		    which, CTL_LIST_LIMIT);
}
