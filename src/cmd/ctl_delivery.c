/*
 * The deliveries of a `trigger` run, on one connection or several.
 *
 * Design: one run is count notifications, each delivered 1 + duplicates +
 * retries times; a delivery is a position in that sequence. Connections (threads)
 * take the next position under a lock, ask the provider for the sample (pure:
 * the same seed, attempt and time give the same bytes, so a duplicate need not
 * be kept), send it, and print the reply under the same lock. With one
 * connection the order is exact; with more, deliveries of one notification meet
 * each other on purpose.
 *
 *	notification 0        notification 1
 *	first dup dup retry   first dup dup retry
 *	  0    1   2    3       4    5   6    7      positions
 *
 * Invariant: a run that could not reach the daemon stops at once instead of
 * telling it for every delivery.
 */
#include "ctl_trigger.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "paynotify/moment.h"

enum kind { KIND_FIRST, KIND_DUPLICATE, KIND_RETRY };
static const char *const kind_names[] = { "first", "duplicate", "retry" };

struct delivery {
	uint64_t number; /* of the notification, from 0 */
	enum kind kind;
	unsigned attempt; /* of the signature: n for the nth retry */
	uint64_t repeat;  /* which duplicate or retry, from 1 */
	int64_t now_us;
};

static bool
take(struct ctl_run *run, struct delivery *ret_delivery)
{
	const struct ctl_args *args = &run->ctl->args;
	uint64_t each = 1 + args->duplicates + args->retries, at;
	struct delivery d = { .kind = KIND_FIRST };
	bool taken;

	pthread_mutex_lock(&run->lock);
	taken = !run->stop && run->next < run->total;
	if (taken) {
		at = run->next % each;
		d.number = run->next / each;
		/* When it happened is one time for all: duplicates have the
		 * bytes of the first, and the provider's sample moves the
		 * time of sending on by itself for each attempt. */
		if (at == 0)
			run->group_now_us = pn_clock_realtime_us();
		d.now_us = run->group_now_us;
		if (at > args->duplicates) {
			d.kind = KIND_RETRY;
			d.repeat = at - args->duplicates;
			d.attempt = (unsigned)d.repeat;
		} else if (at > 0) {
			d.kind = KIND_DUPLICATE;
			d.repeat = at;
		}
		run->next++;
	}
	pthread_mutex_unlock(&run->lock);
	*ret_delivery = d;
	return taken;
}

static int
make_sample(const struct ctl_run *run, const struct delivery *delivery,
    struct pn_arena *arena, struct pn_request *ret_request,
    struct pn_error *ret_error)
{
	const struct ctl_args *args = &run->ctl->args;
	struct pn_sample sample = {
		.event = pn_str_from(args->operands[0]),
		.out_trade_no = pn_str_from(args->out_trade_no),
		.amount_minor = (int64_t)args->amount,
		.refund_minor = (int64_t)args->refund_amount,
		.seed = run->seed + delivery->number,
		.attempt = delivery->attempt,
		.now_us = delivery->now_us,
		.charset = args->charset,
		.dialect = args->dialect,
		.oddity = args->oddity,
		.sign_key = run->sign_key,
	};

	return run->ctl->provider->sample(
	    run->ctl->provider_account, &sample, arena, ret_request, ret_error);
}

int
ctl_run_try(const struct ctl_run *run)
{
	const struct delivery first = { .now_us = pn_clock_realtime_us() };
	PN_CLEANUP(pn_arena_freep)
	struct pn_arena *arena = pn_arena_new(PN_ARENA_BYTES_MAX);
	struct pn_error error = { .text = "out of memory" };
	struct pn_request request;
	int r = -ENOMEM;

	if (arena != NULL)
		r = make_sample(run, &first, arena, &request, &error);
	if (r > 0)
		return ctl_usage(run->ctl->command, "%s", error.text);
	if (r < 0) {
		ctl_complain("cannot make \"%s\": %s",
		    run->ctl->args.operands[0], error.text);
		return CTL_REFUSED;
	}
	return CTL_DONE;
}

/* What our own verification reads from the sample, for the line that is
 * printed: an order number to look for. Empty where it cannot be read. */
static void
look_at(const struct ctl_run *run, const struct delivery *delivery,
    const struct pn_request *request, struct pn_arena *arena,
    struct pn_str *ret_key, struct pn_str *ret_out_trade_no)
{
	struct pn_notification n = { .reason = "" };

	*ret_key = *ret_out_trade_no = (struct pn_str){ NULL, 0 };
	if (run->ctl->provider->verify(run->ctl->provider_account, request,
		delivery->now_us, arena, &n) < 0)
		return;
	*ret_out_trade_no = n.out_trade_no;
	if (n.verdict == PN_VERDICT_ACCEPTED && n.event_count > 0) {
		*ret_key = n.events[0].key;
		if (n.events[0].out_trade_no.len > 0)
			*ret_out_trade_no = n.events[0].out_trade_no;
	}
}

static void
add_json(struct pn_buf *out, const struct ctl_run *run,
    const struct delivery *delivery, struct pn_str key,
    struct pn_str out_trade_no, const struct pn_net_reply *reply, bool success)
{
	pn_buf_add_char(out, '{');
	ctl_add_number(out, "n", (int64_t)delivery->number + 1);
	ctl_add_member(out, "kind", pn_str_from(kind_names[delivery->kind]));
	ctl_add_number(out, "attempt", delivery->attempt);
	ctl_add_member(out, "event", pn_str_from(run->ctl->args.operands[0]));
	ctl_add_member(out, "out_trade_no", out_trade_no);
	ctl_add_member(out, "key", key);
	ctl_add_number(out, "status", reply->status);
	ctl_add_member(out, "body", reply->body);
	pn_buf_printf(out, ",\"success\":%s", success ? "true" : "false");
	ctl_add_number(out, "elapsed_us", reply->elapsed_us);
	pn_buf_add_text(out, "}\n");
}

static void
add_text(struct pn_buf *out, const struct delivery *delivery, struct pn_str key,
    struct pn_str out_trade_no, const struct pn_net_reply *reply)
{
	pn_buf_printf(out, "%3llu  %-9s  ",
	    (unsigned long long)delivery->number + 1,
	    kind_names[delivery->kind]);
	ctl_add_clean(out, key.len > 0            ? key
			   : out_trade_no.len > 0 ? out_trade_no
						  : PN_STR("(not readable)"));
	pn_buf_printf(out, "  ->  %d ", reply->status);
	ctl_add_clean(out, reply->body);
	pn_buf_printf(out, "  (%.1f ms)\n", (double)reply->elapsed_us / 1000);
}

/* Fills path with the name of the capture that a delivery is written to. */
static void
capture_path(const struct ctl_run *run, const struct delivery *delivery,
    char *ret_path, size_t bytes)
{
	const char *out = run->ctl->args.out;
	char repeat[24] = "";

	if (!run->to_folder) {
		(void)snprintf(ret_path, bytes, "%s", out);
		return;
	}
	if (delivery->kind != KIND_FIRST)
		(void)snprintf(repeat, sizeof(repeat), "%llu",
		    (unsigned long long)delivery->repeat);
	(void)snprintf(ret_path, bytes, "%s/%s-%s-%05llu-%s%s.http", out,
	    run->ctl->provider->name, run->ctl->args.operands[0],
	    (unsigned long long)delivery->number + 1,
	    kind_names[delivery->kind], repeat);
}

static int
write_capture(const struct ctl_run *run, const struct delivery *delivery,
    struct pn_str wire)
{
	char path[4096];
	int r;

	capture_path(run, delivery, path, sizeof(path));
	r = ctl_file_write(path, wire);
	if (r < 0) {
		ctl_complain(
		    "cannot write \"%s\": %s", path, ctl_fault_text(r));
		return r;
	}
	if (strcmp(path, "-") == 0)
		return 0;
	if (run->ctl->args.json) {
		PN_CLEANUP(pn_buf_done)
		struct pn_buf out = pn_buf_init(CTL_OUTPUT_BYTES_MAX);

		pn_buf_add_char(&out, '{');
		ctl_add_member(&out, "file", pn_str_from(path));
		pn_buf_add_text(&out, "}\n");
		return ctl_flush(&out) == CTL_DONE ? 0 : -EIO;
	}
	printf("wrote %s\n", path);
	return 0;
}

static void fail_once(struct ctl_run *run, const char *fmt, ...)
    PN_PRINTF(2, 3);

/* The fault that stops the run: every connection may meet it, one tells. */
static void
fail_once(struct ctl_run *run, const char *fmt, ...)
{
	char text[2 * PN_ERROR_TEXT_BYTES_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	pthread_mutex_lock(&run->lock);
	ctl_progress_hide(&run->progress);
	if (!run->stop)
		ctl_complain("%s", text);
	run->stop = true;
	pthread_mutex_unlock(&run->lock);
}

/* Sends and tells. < 0 stops the run, told. */
static int
send_one(struct ctl_run *run, const struct delivery *delivery,
    struct pn_net *net, const struct pn_request *request, struct pn_str wire,
    struct pn_arena *arena)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf out = pn_buf_init(CTL_OUTPUT_BYTES_MAX);
	struct pn_net_reply reply;
	struct pn_error error = { .text = "" };
	struct pn_str key, out_trade_no;
	bool success;
	int r;

	r = pn_net_send_raw(net, run->target.url, wire,
	    run->ctl->args.timeout_us, arena, &reply, &error);
	if (r != 0) {
		fail_once(run,
		    "%s: %s; is the daemon running? start `paynotifyd -c %s` "
		    "or give --to URL",
		    run->target.url, error.text, run->ctl->args.config);
		return r < 0 ? r : -EIO;
	}
	success =
	    ctl_reply_is_success(run->ctl->provider, request, &reply, arena);
	look_at(run, delivery, request, arena, &key, &out_trade_no);
	if (run->ctl->args.json)
		add_json(
		    &out, run, delivery, key, out_trade_no, &reply, success);
	else
		add_text(&out, delivery, key, out_trade_no, &reply);
	pthread_mutex_lock(&run->lock);
	run->sent++;
	run->succeeded += success;
	ctl_progress_hide(&run->progress);
	r = ctl_flush(&out) == CTL_DONE ? 0 : -EIO;
	ctl_progress_set(&run->progress, (int64_t)run->sent);
	pthread_mutex_unlock(&run->lock);
	return r;
}

/* One delivery, from nothing to the printed reply. */
static int
deliver(
    struct ctl_run *run, const struct delivery *delivery, struct pn_net *net)
{
	PN_CLEANUP(pn_arena_freep)
	struct pn_arena *arena = pn_arena_new(PN_ARENA_BYTES_MAX);
	PN_CLEANUP(pn_buf_done)
	struct pn_buf wire = pn_buf_init(4 * PN_CAPTURE_BYTES_MAX);
	struct pn_error error = { .text = "out of memory" };
	struct pn_request request;
	int r = -ENOMEM;

	if (arena != NULL)
		r = make_sample(run, delivery, arena, &request, &error);
	if (r == 0) {
		ctl_request_add(&wire, &request, run->path, run->target.host);
		r = pn_buf_failed(&wire) ? -ENOMEM : 0;
	}
	if (r != 0) {
		fail_once(run, "cannot make \"%s\": %s",
		    run->ctl->args.operands[0], error.text);
		return r < 0 ? r : -EINVAL;
	}
	if (net == NULL) {
		run->sent++;
		ctl_progress_set(&run->progress, (int64_t)run->sent);
		r = write_capture(run, delivery, pn_buf_str(&wire));
		run->succeeded += r == 0;
		return r;
	}
	return send_one(run, delivery, net, &request, pn_buf_str(&wire), arena);
}

static void *
connection_main(void *payload)
{
	struct ctl_run *run = payload;
	struct delivery delivery;
	struct pn_net *net = NULL;
	int r = 0;

	if (run->ctl->args.out == NULL)
		r = pn_net_open(&net);
	if (r < 0)
		ctl_complain(
		    "could not open a connection: %s", ctl_fault_text(r));
	while (r == 0 && take(run, &delivery))
		r = deliver(run, &delivery, net);
	if (r != 0) {
		pthread_mutex_lock(&run->lock);
		run->stop = true;
		pthread_mutex_unlock(&run->lock);
	}
	pn_net_close(net);
	return NULL;
}

/* The calling thread is the first connection. */
void
ctl_run_deliver(struct ctl_run *run)
{
	pthread_t threads[CTL_CONNECTIONS_MAX];
	uint64_t wanted = run->ctl->args.connections, started = 0;

	assert(wanted >= 1 && wanted <= CTL_CONNECTIONS_MAX);
	ctl_progress_start(
	    &run->progress, run->ctl, "deliveries", (int64_t)run->total, false);
	while (started + 1 < wanted && started + 1 < run->total) {
		if (pthread_create(
			&threads[started], NULL, connection_main, run) != 0)
			break; /* fewer at once; all are sent */
		started++;
	}
	(void)connection_main(run);
	for (uint64_t i = 0; i < started; i++)
		(void)pthread_join(threads[i], NULL);
	ctl_progress_hide(&run->progress);
}
