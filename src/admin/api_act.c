/*
 * What an operator does: the same as `paynotifyctl deliveries|consumers|keys`,
 * by the same SQL. Each is written down with who and why, in the database by the
 * functions that do it, and in the log with where it was asked from.
 *
 * Who is what the request says: a note among colleagues, not a proof. Whoever
 * has the token may claim any name.
 */
#include "api.h"

#include <assert.h>
#include <inttypes.h>

#include "paynotify/log.h"
#include "paynotify/render.h"

/* Where no reason is asked for. */
static const char no_reason[] = "none given";

/* In the log: what was asked, by whom, from where, and what became of it. */
static void
log_act(const struct admin_job *job, const char *actor, const char *reason,
    const char *about, int r)
{
	struct pn_str peer = job->call->request.peer;

	/* Each of them: it is the only record of where from. */
	pn_log_always(PN_LOG_NOTICE,
	    &(struct pn_log_about){ .peer = peer.len > 0 ? peer.data : "unix" },
	    "%s %s: \"%s\" by \"%s\", because \"%s\": %s", job->route->method,
	    job->route->path, about, actor, reason,
	    r == 0  ? "done"
	    : r > 0 ? "refused"
		    : "failed");
}

/* The one item of an answer. */
static struct pn_buf *
begin_item(struct admin_page *page, struct admin_job *job)
{
	struct pn_buf *out;

	admin_page_begin(page, job, 1);
	out = admin_page_item(page);
	assert(out != NULL);
	return out;
}

/* -- deliveries and consumers ------------------------------------------------ */

static int
act(struct admin_job *job, const struct pn_action *action)
{
	struct admin_page page;
	int64_t count = 0;
	int r = pn_query_act(job->query, action, &count, &job->error);

	log_act(job, action->actor, action->reason,
	    action->event != NULL   ? action->event
	    : action->state != NULL ? action->state
				    : action->consumer,
	    r);
	if (r > 0) {
		enum admin_problem problem =
		    r == PN_ACT_UNKNOWN ? ADMIN_UNKNOWN : ADMIN_REFUSED;

		if (count == 0)
			return admin_problem(
			    job, problem, "%s.", job->error.text);
		return admin_problem(job, problem, "%s; done to %" PRId64 ".",
		    job->error.text, count);
	}
	if (r < 0)
		return r;
	pn_render_act(begin_item(&page, job), action, count, NULL);
	return admin_page_end(&page, 0);
}

/* redeliver, skip: one event, or all in a state */
static int
act_on_events(struct admin_job *job, enum pn_delivery_action verb)
{
	static const char *const members[] = { "consumer", "event", "state",
		"reason", "actor", NULL };
	struct pn_action action = { .action = verb };

	if (admin_members_check(job, members) != 0 ||
	    admin_member(job, "consumer", true, &action.consumer) != 0 ||
	    admin_member(job, "event", false, &action.event) != 0 ||
	    admin_member(job, "state", false, &action.state) != 0 ||
	    admin_member(job, "reason", true, &action.reason) != 0 ||
	    admin_member(job, "actor", true, &action.actor) != 0)
		return 1;
	if ((action.event == NULL) == (action.state == NULL))
		return admin_problem(job, ADMIN_BAD_BODY,
		    "Give \"event\" (an id, key or seq) or \"state\" (dead or "
		    "retry): one of them.");
	/* What is leased or waits changes while one looks. */
	if (action.state != NULL && strcmp(action.state, "dead") != 0 &&
	    strcmp(action.state, "retry") != 0)
		return admin_problem(job, ADMIN_BAD_BODY,
		    "\"state\" is \"%s\": here it is dead or retry.",
		    action.state);
	return act(job, &action);
}

/* pause, resume, remove */
static int
act_on_consumer(struct admin_job *job, enum pn_delivery_action verb)
{
	static const char *const members[] = { "reason", "actor", NULL };
	struct pn_action action = { .action = verb, .consumer = job->name };
	bool explained = verb != PN_ACTION_RESUME;

	if (admin_members_check(job, members) != 0 ||
	    admin_member(job, "reason", explained, &action.reason) != 0 ||
	    admin_member(job, "actor", true, &action.actor) != 0)
		return 1;
	if (action.reason == NULL)
		action.reason = no_reason;
	return act(job, &action);
}

int
admin_deliveries_redeliver(struct admin_job *job)
{
	return act_on_events(job, PN_ACTION_REDELIVER);
}

int
admin_deliveries_skip(struct admin_job *job)
{
	return act_on_events(job, PN_ACTION_SKIP);
}

int
admin_consumers_pause(struct admin_job *job)
{
	return act_on_consumer(job, PN_ACTION_PAUSE);
}

int
admin_consumers_resume(struct admin_job *job)
{
	return act_on_consumer(job, PN_ACTION_RESUME);
}

int
admin_consumers_remove(struct admin_job *job)
{
	return act_on_consumer(job, PN_ACTION_REMOVE);
}

/* -- keys of the gateway ----------------------------------------------------- */

/* Tenant and route are always named: the same key of another tenant, or of
 * another route, is another payment. */
static int
act_on_key(struct admin_job *job, enum pn_guard_act verb)
{
	static const char *const members[] = { "tenant", "route", "key",
		"reason", "actor", NULL };
	struct pn_guard_action action = { .act = verb };
	struct admin_page page;
	int r;

	if (admin_members_check(job, members) != 0 ||
	    admin_member(job, "tenant", true, &action.tenant) != 0 ||
	    admin_member(job, "route", true, &action.route) != 0 ||
	    admin_member(job, "key", true, &action.key) != 0 ||
	    admin_member(job, "reason", true, &action.reason) != 0 ||
	    admin_member(job, "actor", true, &action.actor) != 0)
		return 1;
	r = pn_query_guard_act(job->query, &action, &job->error);
	log_act(job, action.actor, action.reason, action.key, r);
	if (r > 0)
		return admin_problem(job,
		    r == PN_GUARD_NO_KEY     ? ADMIN_UNKNOWN
		    : r == PN_GUARD_BAD_NAME ? ADMIN_BAD_BODY
					     : ADMIN_REFUSED,
		    "%s.", job->error.text);
	if (r < 0)
		return r;
	pn_render_guard_act(begin_item(&page, job), &action, NULL);
	return admin_page_end(&page, 0);
}

int
admin_keys_release(struct admin_job *job)
{
	return act_on_key(job, PN_GUARD_SET_FREE);
}

int
admin_keys_forget(struct admin_job *job)
{
	return act_on_key(job, PN_GUARD_FORGET);
}
