/*
 * `trigger`: signed sample notifications of a test account, sent to a daemon or
 * written as captures. What can be refused is refused here, before anything is
 * sent; ctl_delivery.c sends.
 *
 * Invariant: only accounts with `test = yes`. A live account's private key is
 * the provider's alone, so there is nothing that a sample of it could be signed
 * with honestly.
 */
#include "ctl_trigger.h"

#include <assert.h>
#include <string.h>
#include <sys/stat.h>

#include "paynotify/digest.h"

static void
add_listed(const struct ctl *ctl, struct pn_buf *out, const char *member,
    const char *name, const char *what)
{
	if (ctl->args.json) {
		pn_buf_add_char(out, '{');
		ctl_add_member(out, member, pn_str_from(name));
		if (what != NULL)
			ctl_add_member(out, "what", pn_str_from(what));
		pn_buf_add_text(out, "}\n");
	} else if (what != NULL) {
		pn_buf_printf(out, "  %-16s %s\n", name, what);
	} else {
		pn_buf_printf(out, "  %s\n", name);
	}
}

static int
print_list(const struct ctl *ctl)
{
	const char *const *event = ctl->provider->sample_events;
	const struct pn_sample_oddity *oddity = ctl->provider->sample_oddities;
	PN_CLEANUP(pn_buf_done)
	struct pn_buf out = pn_buf_init(CTL_OUTPUT_BYTES_MAX);

	if (!ctl->args.json)
		pn_buf_add_text(&out, "events:\n");
	for (; *event != NULL; event++)
		add_listed(ctl, &out, "event", *event, NULL);
	if (!ctl->args.json)
		pn_buf_add_text(&out, "oddities:\n");
	for (; oddity->name != NULL; oddity++)
		add_listed(ctl, &out, "oddity", oddity->name, oddity->what);
	return ctl_flush(&out);
}

static int
load_sign_key(struct ctl_run *run)
{
	const char *path = run->ctl->args.sign_key;
	PN_CLEANUP(pn_buf_done)
	struct pn_buf pem = pn_buf_init(PN_KEY_FILE_BYTES_MAX);
	struct pn_error error = { .text = "" };
	int r;

	if (path == NULL)
		return CTL_DONE;
	r = ctl_file_read(path, PN_KEY_FILE_BYTES_MAX, &pem);
	if (r != 0)
		return ctl_usage(run->ctl->command,
		    "cannot read --sign-key \"%s\": %s", path,
		    r > 0 ? "it is too long for a key" : ctl_fault_text(r));
	if (pn_private_key_parse(pn_buf_str(&pem), &run->sign_key, &error) < 0)
		return ctl_usage(run->ctl->command, "--sign-key \"%s\": %s",
		    path, error.text);
	return CTL_DONE;
}

/* Everything that can be refused before anything is sent. */
static int
prepare(struct ctl_run *run)
{
	const struct ctl_args *args = &run->ctl->args;
	struct stat st;
	int r;

	if (args->operand_count != 1)
		return ctl_usage(run->ctl->command,
		    "it needs EVENT, such as "
		    "payment.succeeded; --list shows all");
	if (!run->ctl->account->test) {
		ctl_complain("account %s is not a test account: set `test = "
			     "yes` and `test_private_key` at %s:%d to send "
			     "samples of it, never for a live account",
		    args->account, run->ctl->account->place.file,
		    run->ctl->account->place.line);
		return CTL_REFUSED;
	}
	r = ctl_target_find(run->ctl, &run->target);
	if (r != CTL_DONE)
		return r;
	if (run->target.path[0] != '\0')
		(void)snprintf(
		    run->path, sizeof(run->path), "%s", run->target.path);
	else
		(void)snprintf(run->path, sizeof(run->path), "/notify/%s/%s",
		    run->ctl->account->provider, run->ctl->account->tenant);
	run->total = args->count * (1 + args->duplicates + args->retries);
	run->to_folder = args->out != NULL && stat(args->out, &st) == 0 &&
			 S_ISDIR(st.st_mode);
	if (args->out != NULL && !run->to_folder && run->total > 1)
		return ctl_usage(run->ctl->command,
		    "--out \"%s\" must be a "
		    "folder that exists, for %llu captures",
		    args->out, (unsigned long long)run->total);
	if (args->out != NULL && args->connections > 1)
		return ctl_usage(run->ctl->command, "--connections is for "
						    "sending, not with --out");
	r = load_sign_key(run);
	return r != CTL_DONE ? r : ctl_run_try(run);
}

static void
add_summary(struct pn_buf *out, const struct ctl_run *run)
{
	uint64_t failed = run->sent - run->succeeded;

	if (run->ctl->args.json) {
		pn_buf_add_char(out, '{');
		ctl_add_number(out, "sent", (int64_t)run->sent);
		ctl_add_number(out, "succeeded", (int64_t)run->succeeded);
		ctl_add_number(out, "failed", (int64_t)failed);
		ctl_add_number(
		    out, "not_sent", (int64_t)(run->total - run->sent));
		pn_buf_add_text(out, "}\n");
		return;
	}
	pn_buf_printf(out,
	    "sent %llu to %s%s: %llu answered with success, "
	    "%llu not",
	    (unsigned long long)run->sent, run->target.url, run->path,
	    (unsigned long long)run->succeeded, (unsigned long long)failed);
	if (run->sent < run->total)
		pn_buf_printf(out, "; %llu not sent",
		    (unsigned long long)(run->total - run->sent));
	pn_buf_add_char(out, '\n');
}

int
ctl_trigger(struct ctl *ctl)
{
	struct ctl_run run = { .ctl = ctl, .lock = PTHREAD_MUTEX_INITIALIZER };
	PN_CLEANUP(pn_buf_done)
	struct pn_buf out = pn_buf_init(CTL_OUTPUT_BYTES_MAX);
	int r;

	if (ctl->args.list)
		return print_list(ctl);
	run.seed = ctl->args.seed;
	if (!ctl->args.seed_given)
		pn_random_bytes(&run.seed, sizeof(run.seed));
	r = prepare(&run);
	if (r == CTL_DONE && pn_net_init() < 0) {
		ctl_complain("could not start the network library");
		r = CTL_REFUSED;
	}
	if (r == CTL_DONE) {
		ctl_run_deliver(&run);
		if (ctl->args.out == NULL && run.sent > 0) {
			add_summary(&out, &run);
			r = ctl_flush(&out);
		}
		if (run.succeeded != run.total)
			r = CTL_REFUSED;
	}
	pn_private_key_free(run.sign_key);
	return r;
}
