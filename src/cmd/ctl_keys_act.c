/*
 * `keys release` and `keys forget`: what an operator decides about a key of the
 * idempotency guard. Written down with who and why (paynotify.guard_actions).
 *
 * Tenant and route are always named: the same key of another tenant, or of
 * another route, is another payment, and to guess which is meant would charge
 * the wrong one again.
 */
#include "ctl_keys.h"

#include <assert.h>

#include "paynotify/render.h"

static void
add_text(struct pn_buf *out, const struct pn_guard_action *action)
{
	ctl_add_clean(out, pn_str_from(action->tenant));
	pn_buf_add_text(out, ", ");
	ctl_add_clean(out, pn_str_from(action->route));
	pn_buf_add_text(out, ", ");
	ctl_add_clean(out, pn_str_from(action->key));
	pn_buf_add_text(out, action->act == PN_GUARD_SET_FREE
				 ? ": free, the next request runs\n"
				 : ": forgotten\n");
}

static int
act_as(struct ctl *ctl, enum pn_guard_act act, const char *actor)
{
	const struct ctl_args *args = &ctl->args;
	const struct pn_guard_action action = {
		.act = act,
		.tenant = args->tenant,
		.route = args->route,
		.key = args->operands[0],
		.actor = actor,
		.reason = args->reason,
	};
	PN_CLEANUP(pn_buf_done)
	struct pn_buf out = pn_buf_init(CTL_OUTPUT_BYTES_MAX);
	struct pn_error error = { .text = "" };
	int r = pn_query_guard_act(ctl->query, &action, &error), flushed;

	if (r < 0)
		return ctl_database_complain(ctl->conf, ctl->dsn, r, &error);
	if (r == PN_GUARD_NO_KEY)
		ctl_complain("%s; `" CTL_NAME " keys list -c %s` shows those "
			     "there are",
		    error.text, args->config);
	else if (r > 0)
		ctl_complain("%s", error.text);
	if (args->json) {
		pn_render_guard_act(&out, &action, error.text);
		pn_buf_add_char(&out, '\n');
	} else if (r == 0) {
		add_text(&out, &action);
	}
	flushed = ctl_flush(&out);
	return r > 0 ? CTL_REFUSED : flushed;
}

static int
act_on_key(struct ctl *ctl, enum pn_guard_act act)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf actor = pn_buf_init(CTL_OUTPUT_BYTES_MAX);

	/* By the table of commands. */
	assert(ctl->args.operand_count == 1);
	assert(ctl->args.tenant != NULL && ctl->args.route != NULL);
	assert(ctl->args.reason != NULL);
	ctl_actor_find(&ctl->args, &actor);
	if (pn_buf_failed(&actor)) {
		ctl_complain("out of memory");
		return CTL_REFUSED;
	}
	return act_as(ctl, act, actor.data);
}

int
ctl_keys_release(struct ctl *ctl)
{
	return act_on_key(ctl, PN_GUARD_SET_FREE);
}

int
ctl_keys_forget(struct ctl *ctl)
{
	return act_on_key(ctl, PN_GUARD_FORGET);
}
