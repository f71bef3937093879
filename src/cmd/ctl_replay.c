/*
 * `replay`: captured requests sent again, byte for byte.
 *
 * Nothing is parsed to be changed. A capture is only looked at to know that it is
 * one, and what its success would be: the path names the provider. What is no HTTP
 * request is not sent: a server answers such a thing by hanging up, and that would
 * be told in place of what is wrong with the file.
 */
#include "ctl_list.h"
#include "ctl_send.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "paynotify/capture.h"

struct replay {
	struct ctl *ctl;
	struct ctl_target target;
	struct pn_net *net;
	size_t sent, succeeded;
	struct ctl_progress progress;
};

/* "/notify/alipay/shop1" -> alipay's; NULL when the path names none. */
static const struct pn_provider *
provider_of(struct pn_str path)
{
	static const char prefix[] = "/notify/";
	struct pn_str rest;

	if (!pn_str_starts(path, prefix))
		return NULL;
	rest = (struct pn_str){ path.data + strlen(prefix),
		path.len - strlen(prefix) };
	return pn_provider_find(pn_str_split(&rest, '/'));
}

static int
print_reply(const struct replay *replay, const char *path,
    const struct pn_net_reply *reply, bool success)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf out = pn_buf_init(CTL_OUTPUT_BYTES_MAX);

	if (replay->ctl->args.json) {
		pn_buf_add_char(&out, '{');
		ctl_add_member(&out, "file", pn_str_from(path));
		ctl_add_number(&out, "status", reply->status);
		ctl_add_member(&out, "body", reply->body);
		pn_buf_printf(
		    &out, ",\"success\":%s", success ? "true" : "false");
		ctl_add_number(&out, "elapsed_us", reply->elapsed_us);
		pn_buf_add_text(&out, "}\n");
	} else {
		ctl_add_clean(&out, pn_str_from(path));
		pn_buf_printf(&out, "  ->  %d ", reply->status);
		ctl_add_clean(&out, reply->body);
		pn_buf_printf(
		    &out, "  (%.1f ms)\n", (double)reply->elapsed_us / 1000);
	}
	return ctl_flush(&out);
}

/* CTL_DONE also when the reply was a failure: the sums tell. */
static int
send_capture(struct replay *replay, const char *path)
{
	PN_CLEANUP(pn_arena_freep)
	struct pn_arena *arena = pn_arena_new(PN_ARENA_BYTES_MAX);
	PN_CLEANUP(pn_buf_done)
	struct pn_buf raw = pn_buf_init(2 * PN_CAPTURE_BYTES_MAX);
	struct pn_error error = { .text = "out of memory" };
	const struct pn_provider *provider = NULL;
	struct pn_request request;
	struct pn_net_reply reply;
	bool success;
	int r;

	/* Twice the limit: what is over it may be sent, to see it refused. */
	r = ctl_file_read(path, 2 * PN_CAPTURE_BYTES_MAX, &raw);
	if (r != 0)
		return ctl_usage(replay->ctl->command,
		    "cannot read capture \"%s\": %s", path,
		    r > 0 ? "it is far longer than any request"
			  : ctl_fault_text(r));
	if (arena == NULL || (r = pn_capture_parse(arena, pn_buf_str(&raw),
				  &request, &error)) != 0) {
		ctl_progress_hide(&replay->progress);
		ctl_complain("%s: %s%s", path,
		    r > 0 ? "not sent, it is no HTTP request: " : "",
		    error.text);
		return CTL_REFUSED;
	}
	provider = provider_of(request.path);
	if (pn_net_send_raw(replay->net, replay->target.url, pn_buf_str(&raw),
		replay->ctl->args.timeout_us, arena, &reply, &error) != 0) {
		ctl_progress_hide(&replay->progress);
		ctl_complain("%s: %s; is the daemon running? start "
			     "`paynotifyd -c %s` or give --to URL",
		    replay->target.url, error.text, replay->ctl->args.config);
		return CTL_REFUSED;
	}
	ctl_progress_hide(&replay->progress);
	success = ctl_reply_is_success(provider, &request, &reply, arena);
	replay->sent++;
	replay->succeeded += success;
	return print_reply(replay, path, &reply, success);
}

int
ctl_replay(struct ctl *ctl)
{
	struct replay replay = { .ctl = ctl };
	int r = ctl_target_find(ctl, &replay.target);

	if (r == CTL_DONE && replay.target.path[0] != '\0')
		return ctl_usage(ctl->command,
		    "--to \"%s\": without its path, since each capture has "
		    "one in its request line",
		    ctl->args.to);
	/* A misspelt name is told before anything is sent. */
	for (size_t i = 0; r == CTL_DONE && i < ctl->args.operand_count; i++)
		if (strcmp(ctl->args.operands[i], "-") != 0 &&
		    access(ctl->args.operands[i], R_OK) != 0)
			r = ctl_usage(ctl->command,
			    "cannot read capture \"%s\": %s",
			    ctl->args.operands[i], ctl_fault_text(-errno));
	if (r != CTL_DONE)
		return r;
	if (pn_net_init() < 0 || pn_net_open(&replay.net) < 0) {
		ctl_complain("could not start the network library");
		return CTL_REFUSED;
	}
	ctl_progress_start(&replay.progress, ctl, "captures",
	    (int64_t)ctl->args.operand_count, false);
	for (size_t i = 0; r == CTL_DONE && i < ctl->args.operand_count; i++) {
		r = send_capture(&replay, ctl->args.operands[i]);
		ctl_progress_set(&replay.progress, (int64_t)i + 1);
	}
	ctl_progress_hide(&replay.progress);
	pn_net_close(replay.net);
	if (r == CTL_DONE && replay.succeeded != ctl->args.operand_count)
		r = CTL_REFUSED;
	return r;
}
