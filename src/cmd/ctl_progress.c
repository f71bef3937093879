/*
 * The bar of what takes long: done of how many, how fast, and for how long still.
 *
 *   evidence  123,456 of ~1,000,000  [###.......]  23,456/s  0:37 left
 *
 * It is drawn at most ten times a second, so that a step costs a look at the
 * clock. What does not fit the terminal is left out from the right, bar first
 * of all: a line that wraps could not be taken back.
 */
#include "ctl_list.h"

#include <assert.h>
#include <unistd.h>

#include "paynotify/moment.h"

enum {
	REDRAW_US = 100 * PN_MILLISECOND_US,
	BAR_COLUMNS = 20,
	SURE_US = 2 * PN_SECOND_US, /* before, a rate is a guess */
};

static void
add_left(struct pn_buf *out, int64_t seconds)
{
	if (seconds >= 3600)
		pn_buf_printf(out, "  %lld:%02lld:%02lld left",
		    (long long)(seconds / 3600), (long long)(seconds / 60 % 60),
		    (long long)(seconds % 60));
	else
		pn_buf_printf(out, "  %lld:%02lld left",
		    (long long)(seconds / 60), (long long)(seconds % 60));
}

static void
add_bar(struct pn_buf *out, int64_t done, int64_t total)
{
	int64_t full = (int64_t)((double)done / (double)total * BAR_COLUMNS);

	pn_buf_add_text(out, "  [");
	for (int64_t i = 0; i < BAR_COLUMNS; i++)
		pn_buf_add_char(out, i < full ? '#' : '.');
	pn_buf_add_char(out, ']');
}

void
ctl_progress_add_line(const struct ctl_progress *progress, int64_t elapsed_us,
    size_t columns, struct pn_buf *out)
{
	PN_CLEANUP(pn_buf_done) struct pn_buf head = pn_buf_init(256);
	PN_CLEANUP(pn_buf_done) struct pn_buf bar = pn_buf_init(256);
	PN_CLEANUP(pn_buf_done) struct pn_buf tail = pn_buf_init(256);
	int64_t done = progress->done, total = progress->total;
	double rate = 0;

	/* An estimate that was too low is none any more. */
	if (progress->about && done > total)
		total = 0;
	pn_buf_printf(&head, "%s  ", progress->what);
	ctl_add_grouped(&head, done);
	if (total > 0) {
		pn_buf_add_text(&head, progress->about ? " of ~" : " of ");
		ctl_add_grouped(&head, total);
		add_bar(&bar, done, total);
	}
	if (elapsed_us >= SURE_US)
		rate = (double)done * PN_SECOND_US / (double)elapsed_us;
	if (rate >= 1) {
		pn_buf_add_text(&tail, "  ");
		ctl_add_grouped(&tail, (int64_t)rate);
		pn_buf_add_text(&tail, "/s");
		if (total > done)
			add_left(
			    &tail, (int64_t)((double)(total - done) / rate));
	}
	pn_buf_add_str(out, pn_buf_str(&head));
	if (head.len + bar.len + tail.len <= columns)
		pn_buf_add_str(out, pn_buf_str(&bar));
	if (head.len + tail.len <= columns)
		pn_buf_add_str(out, pn_buf_str(&tail));
}

void
ctl_progress_start(struct ctl_progress *progress, const struct ctl *ctl,
    const char *what, int64_t total, bool about)
{
	*progress = (struct ctl_progress){
		.on = !ctl->args.json && ctl_term_columns(STDERR_FILENO) > 0,
		.what = what,
		.total = total,
		.about = about,
		.started_us = pn_clock_monotonic_us(),
	};
	progress->drawn_us = progress->started_us;
}

void
ctl_progress_hide(struct ctl_progress *progress)
{
	if (!progress->drawn)
		return;
	(void)fputs("\r\033[K", stderr);
	(void)fflush(stderr);
	progress->drawn = false;
}

void
ctl_progress_set(struct ctl_progress *progress, int64_t done)
{
	PN_CLEANUP(pn_buf_done) struct pn_buf line = pn_buf_init(1024);
	int64_t now_us;

	assert(done >= progress->done);
	progress->done = done;
	if (!progress->on)
		return;
	now_us = pn_clock_monotonic_us();
	if (now_us - progress->drawn_us < REDRAW_US)
		return;
	progress->drawn_us = now_us;
	ctl_progress_hide(progress);
	/* One column less: some terminals wrap behind the last. */
	ctl_progress_add_line(progress, now_us - progress->started_us,
	    ctl_term_columns(STDERR_FILENO) - 1, &line);
	(void)fwrite(line.data, 1, line.len, stderr);
	(void)fflush(stderr);
	progress->drawn = true;
}
