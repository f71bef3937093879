/*
 * `deliveries redeliver|skip|pause|resume` and `consumers remove`: what an
 * operator does about the hand-off. Each is written down with who and why
 * (paynotify.delivery_actions).
 *
 * Several events are several transactions: one that is refused - it is in flight
 * at this moment, say - keeps none of the others back, is told, and makes the
 * exit code 1. With --state it is some hundred a transaction, up to the first
 * that is refused; asking again goes on.
 *
 * Who: --actor, else whoever is behind sudo, else who is logged in. It is a note
 * among colleagues, not a proof: whoever may run this may claim any name.
 */
#include "ctl.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "paynotify/render.h"

/* Where no reason is asked for. */
static const char no_reason[] = "none given";

struct acting {
	struct ctl *ctl;
	struct pn_action action;
	struct pn_buf consumer, actor; /* what action points to */
	struct pn_buf out;
	int exit;
};

void
ctl_actor_find(const struct ctl_args *args, struct pn_buf *ret_actor)
{
	static const char *const variables[] = { "SUDO_USER", "LOGNAME" };
	const char *name = args->actor;
	struct passwd entry, *found = NULL;
	char text[4096];

	for (size_t i = 0; name == NULL && i < PN_COUNT(variables); i++) {
		name = getenv(variables[i]);
		if (name != NULL &&
		    (name[0] == '\0' || !pn_str_is_utf8(pn_str_from(name))))
			name = NULL;
	}
	if (name == NULL &&
	    getpwuid_r(getuid(), &entry, text, sizeof(text), &found) == 0 &&
	    found != NULL)
		name = found->pw_name;
	if (name != NULL)
		pn_buf_add_text(ret_actor, name);
	else
		pn_buf_printf(ret_actor, "uid %lu", (unsigned long)getuid());
}

/* -- telling ----------------------------------------------------------------- */

static void
add_text(struct pn_buf *out, const struct pn_action *action, int64_t count)
{
	if (action->event != NULL)
		ctl_add_clean(out, pn_str_from(action->event));
	else if (action->state != NULL)
		pn_buf_printf(out, "%lld %s event%s", (long long)count,
		    action->state, count == 1 ? "" : "s");
	else
		ctl_add_clean(out, pn_str_from(action->consumer));
	switch (action->action) {
	case PN_ACTION_REDELIVER:
		pn_buf_printf(out, ": once more to %s\n", action->consumer);
		break;
	case PN_ACTION_SKIP:
		pn_buf_printf(out, ": skipped for %s\n", action->consumer);
		break;
	case PN_ACTION_PAUSE: pn_buf_add_text(out, ": paused\n"); break;
	case PN_ACTION_RESUME: pn_buf_add_text(out, ": active\n"); break;
	case PN_ACTION_REMOVE: pn_buf_add_text(out, ": removed\n"); break;
	}
}

/* -- doing ------------------------------------------------------------------- */

/* True when the next may be tried. */
static bool
act_once(struct acting *acting)
{
	struct ctl *ctl = acting->ctl;
	struct pn_error error = { .text = "" };
	int64_t count = 0;
	int r = pn_query_act(ctl->query, &acting->action, &count, &error);

	if (r < 0) {
		acting->exit =
		    ctl_database_complain(ctl->conf, ctl->dsn, r, &error);
		return false;
	}
	if (r > 0) {
		acting->exit = CTL_REFUSED;
		ctl_complain("%s", error.text);
	}
	if (ctl->args.json) {
		pn_render_act(&acting->out, &acting->action, count, error.text);
		pn_buf_add_char(&acting->out, '\n');
	} else if (r == 0) {
		add_text(&acting->out, &acting->action, count);
	}
	/* At once: it has been done, whatever becomes of the others. */
	if (ctl_flush(&acting->out) != CTL_DONE)
		acting->exit = CTL_REFUSED;
	return true;
}

static int
act_open(struct acting *acting, struct ctl *ctl, enum pn_delivery_action action)
{
	*acting = (struct acting){
		.ctl = ctl,
		.consumer = pn_buf_init(CTL_OUTPUT_BYTES_MAX),
		.actor = pn_buf_init(CTL_OUTPUT_BYTES_MAX),
		.out = pn_buf_init(CTL_OUTPUT_BYTES_MAX),
	};
	ctl_actor_find(&ctl->args, &acting->actor);
	if (pn_buf_failed(&acting->actor)) {
		ctl_complain("out of memory");
		return CTL_REFUSED;
	}
	acting->action = (struct pn_action){
		.action = action,
		.actor = acting->actor.data,
		.reason =
		    ctl->args.reason != NULL ? ctl->args.reason : no_reason,
	};
	return CTL_DONE;
}

static void
act_close(struct acting *acting)
{
	pn_buf_done(&acting->consumer);
	pn_buf_done(&acting->actor);
	pn_buf_done(&acting->out);
}

int
ctl_deliveries_act_check(const struct ctl *ctl)
{
	const struct ctl_args *args = &ctl->args;

	if ((args->operand_count > 0) == (args->state != NULL))
		return ctl_usage(ctl->command,
		    args->state == NULL ? "it needs EVENT, or --state dead"
					: "give EVENT or --state, not both");
	/* What is leased or waits changes while one looks. */
	if (args->state != NULL && strcmp(args->state, "dead") != 0 &&
	    strcmp(args->state, "retry") != 0)
		return ctl_usage(ctl->command,
		    "--state \"%s\": here it is dead or retry", args->state);
	return CTL_DONE;
}

/* redeliver, skip: events, or all in a state */
static int
act_on_events(struct ctl *ctl, enum pn_delivery_action action)
{
	const struct ctl_args *args = &ctl->args;
	struct acting acting;
	bool go_on = true;
	int r;

	r = act_open(&acting, ctl, action);
	if (r == CTL_DONE)
		r = ctl_consumer_choose(ctl, &acting.consumer);
	if (r == CTL_DONE) {
		acting.action.consumer = acting.consumer.data;
		acting.action.state = args->state;
		if (args->state != NULL)
			(void)act_once(&acting);
		for (size_t i = 0; go_on && i < args->operand_count; i++) {
			acting.action.event = args->operands[i];
			go_on = act_once(&acting);
		}
		r = acting.exit;
	}
	act_close(&acting);
	return r;
}

/* pause, resume, remove */
static int
act_on_consumer(struct ctl *ctl, enum pn_delivery_action action)
{
	struct acting acting;
	int r = act_open(&acting, ctl, action);

	/* An operand, here; --consumer elsewhere. */
	ctl->args.consumer = ctl->args.operands[0];
	if (r == CTL_DONE)
		r = ctl_consumer_choose(ctl, &acting.consumer);
	if (r == CTL_DONE) {
		acting.action.consumer = acting.consumer.data;
		(void)act_once(&acting);
		r = acting.exit;
	}
	act_close(&acting);
	return r;
}

int
ctl_deliveries_redeliver(struct ctl *ctl)
{
	return act_on_events(ctl, PN_ACTION_REDELIVER);
}

int
ctl_deliveries_skip(struct ctl *ctl)
{
	return act_on_events(ctl, PN_ACTION_SKIP);
}

int
ctl_deliveries_pause(struct ctl *ctl)
{
	return act_on_consumer(ctl, PN_ACTION_PAUSE);
}

int
ctl_deliveries_resume(struct ctl *ctl)
{
	return act_on_consumer(ctl, PN_ACTION_RESUME);
}

/* A daemon with this section makes it a new consumer within a second, and pushes
 * all events once more. */
int
ctl_consumers_remove(struct ctl *ctl)
{
	const char *name = ctl->args.operands[0];

	for (size_t i = 0; i < ctl->conf->deliver_count; i++) {
		const struct pn_conf_deliver *endpoint =
		    &ctl->conf->delivers[i];

		if (strcmp(endpoint->name, name) != 0)
			continue;
		ctl_complain("%s:%d: the section [deliver %s] is still there: "
			     "\"%s\" would come back as a new consumer, which "
			     "is handed all events again. Take the section out "
			     "and reload every daemon that has it, then remove "
			     "\"%s\"",
		    endpoint->place.file, endpoint->place.line, name, name,
		    name);
		return CTL_REFUSED;
	}
	return act_on_consumer(ctl, PN_ACTION_REMOVE);
}
