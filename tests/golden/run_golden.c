/*
 * run_golden ROOT...: every ROOT/<provider>/<case>/ through the C contracts
 * (configuration, capture, provider), compared with its expect.json.
 *
 * A case is copied first, key files with mode 0600, because the folders may be
 * readable by everybody and the configuration refuses that. Then: conf with
 * only this account, account_open, capture, verify with "at" as now.
 *
 * expect.json: provider, tenant, at, accept, verdicts (any of them is right);
 * events, each with the members that must be equal (null: null or absent;
 * objects inside are compared member by member, so a case may name a few
 * fields of the payload); and of our own generator: verified, alarm, probe.
 *
 * It prints one line a difference and "N passed, M failed"; exit 1 when a case
 * failed or a ROOT has none. A ROOT that does not exist is left out with a
 * word: the shared cases are beside some checkouts only.
 */
#include "paynotify/capture.h"
#include "paynotify/conf.h"
#include "paynotify/json.h"
#include "paynotify/provider.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "paynotify/moment.h"

enum {
	CASES_MAX = 4096,
	FILES_PER_CASE_MAX = 64,
	PATH_BYTES = 4096,
	EVENT_BYTES_MAX = 16 << 20,
};

/* One case while it runs. */
struct run {
	const char *provider_name;
	char dir[PATH_BYTES];  /* where it stands */
	char copy[PATH_BYTES]; /* where the copy is */
	json_t *expect;
	const struct pn_provider *provider;
	struct pn_conf *conf;
	void *account;
	struct pn_arena *arena;
	struct pn_buf raw;
	struct pn_notification notification;
	unsigned differences;
};

static void differ(struct run *run, const char *fmt, ...) PN_PRINTF(2, 3);

static void
differ(struct run *run, const char *fmt, ...)
{
	va_list ap;

	printf("%s: ", run->dir);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	run->differences++;
}

/* Fails only for a programming error of this file: paths are short. */
static void
join(char *out, const char *dir, const char *name)
{
	int len = snprintf(out, PATH_BYTES, "%s/%s", dir, name);

	assert(len > 0 && len < PATH_BYTES);
}

static int
read_file(const char *path, struct pn_buf *ret_content)
{
	char chunk[16384];
	size_t got;
	FILE *file = fopen(path, "rb");

	if (file == NULL)
		return -errno;
	while ((got = fread(chunk, 1, sizeof(chunk), file)) > 0)
		pn_buf_add(ret_content, chunk, got);
	(void)fclose(file);
	return pn_buf_failed(ret_content) ? -EFBIG : 0;
}

static int
copy_file(const char *from, const char *to)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf content = pn_buf_init(PN_CAPTURE_BYTES_MAX * 2);
	int fd, r;
	bool whole;

	r = read_file(from, &content);
	if (r < 0)
		return r;
	fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	whole = content.len == 0 ||
		write(fd, content.data, content.len) == (ssize_t)content.len;
	(void)close(fd);
	return whole ? 0 : -EIO;
}

static int
is_name(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Calls visit for each name in dir, sorted. */
static int
for_each(const char *dir, int max,
    void (*visit)(void *payload, const char *name), void *payload)
{
	struct dirent **names;
	int count = scandir(dir, &names, is_name, alphasort);

	if (count < 0)
		return -errno;
	assert(count <= max);
	(void)max;
	for (int i = 0; i < count; i++) {
		visit(payload, names[i]->d_name);
		free(names[i]);
	}
	free(names);
	return count;
}

static void
copy_one(void *payload, const char *name)
{
	struct run *run = payload;
	char from[PATH_BYTES], to[PATH_BYTES];
	int r;

	join(from, run->dir, name);
	join(to, run->copy, name);
	r = copy_file(from, to);
	if (r < 0)
		differ(run, "could not copy \"%s\": %s", name,
		    strerrordesc_np(-r));
}

static void
remove_one(void *payload, const char *name)
{
	const struct run *run = payload;
	char path[PATH_BYTES];

	join(path, run->copy, name);
	(void)unlink(path);
}

/* --- comparing --------------------------------------------------------- */

static void
compare_value(struct run *run, size_t event, const char *name,
    const json_t *want, const json_t *have)
{
	char *want_text, *have_text;

	if (json_is_null(want) && (have == NULL || json_is_null(have)))
		return;
	if (have != NULL && json_equal(want, have))
		return;
	want_text = json_dumps(want, JSON_ENCODE_ANY | JSON_COMPACT);
	have_text = have == NULL
			? NULL
			: json_dumps(have, JSON_ENCODE_ANY | JSON_COMPACT);
	differ(run, "events[%zu].%s is %s, not %s", event, name,
	    have_text == NULL ? "absent" : have_text, want_text);
	free(want_text);
	free(have_text);
}

static void
compare_event(struct run *run, size_t index, json_t *want, json_t *have)
{
	const char *name, *inner_name;
	json_t *value, *inner;

	json_object_foreach(want, name, value)
	{
		json_t *other = json_object_get(have, name);

		if (!json_is_object(value) || !json_is_object(other)) {
			compare_value(run, index, name, value, other);
			continue;
		}
		json_object_foreach(value, inner_name, inner)
		    compare_value(run, index, inner_name, inner,
			json_object_get(other, inner_name));
	}
}

static json_t *
event_json(struct run *run, size_t index)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf text = pn_buf_init(EVENT_BYTES_MAX);
	struct pn_event_row row = {
		.event = &run->notification.events[index],
		.seq = -1,
		.received_at_us = PN_MOMENT_NONE,
		.order_check = PN_STR("off"),
		.payload = run->notification.payload,
	};
	struct pn_error error = { "out of memory" };
	json_t *event = NULL;

	pn_event_add_json(&text, &row);
	/* What we print, a strict reader must take. */
	if (pn_buf_failed(&text) ||
	    pn_json_parse(pn_buf_str(&text), &event, &error) != 0) {
		differ(run, "events[%zu] is no JSON: %s", index, error.text);
		return NULL;
	}
	return event;
}

static void
compare_flag(struct run *run, const char *name, bool have)
{
	const json_t *want = json_object_get(run->expect, name);

	if (want != NULL && json_is_true(want) != have)
		differ(run, "%s is %s", name, have ? "true" : "false");
}

static void
compare(struct run *run)
{
	const struct pn_notification *have = &run->notification;
	const char *verdict = pn_verdict_name(have->verdict);
	bool accepted = have->verdict == PN_VERDICT_ACCEPTED;
	json_t *events = json_object_get(run->expect, "events");
	json_t *value;
	size_t i;
	bool right = false;

	json_array_foreach(json_object_get(run->expect, "verdicts"), i, value)
	    right |= strcmp(json_string_value(value), verdict) == 0;
	if (!right)
		differ(run, "verdict is %s (%s)", verdict, have->reason);
	if (json_is_true(json_object_get(run->expect, "accept")) != accepted)
		differ(run, "%s", accepted ? "was accepted" : "was refused");
	if (accepted != (have->reason[0] == '\0'))
		differ(run, "verdict %s with reason \"%s\"", verdict,
		    have->reason);
	compare_flag(run, "verified", have->verified);
	compare_flag(run, "alarm", have->alarm);
	compare_flag(run, "probe", have->probe);
	if (json_array_size(events) != have->event_count) {
		differ(run, "%zu events, not %zu", have->event_count,
		    json_array_size(events));
		return;
	}
	json_array_foreach(events, i, value)
	{
		json_t *event = event_json(run, i);

		if (event != NULL)
			compare_event(run, i, value, event);
		json_decref(event);
	}
}

/* --- one case ---------------------------------------------------------- */

static int
load_expect(struct run *run)
{
	PN_CLEANUP(pn_buf_done)
	struct pn_buf text = pn_buf_init(PN_CONF_FILE_BYTES_MAX);
	char path[PATH_BYTES];
	struct pn_error error = { "" };
	int r;

	join(path, run->copy, "expect.json");
	r = read_file(path, &text);
	if (r == 0)
		r = pn_json_parse(pn_buf_str(&text), &run->expect, &error);
	if (r != 0)
		differ(run, "expect.json: %s",
		    r < 0 ? strerrordesc_np(-r) : error.text);
	return r;
}

static int
open_account(struct run *run)
{
	const char *tenant =
	    json_string_value(json_object_get(run->expect, "tenant"));
	const struct pn_conf_account *account;
	char path[PATH_BYTES], name[PATH_BYTES];
	struct pn_error error = { "" };
	int r;

	if (tenant == NULL)
		tenant = "case";
	join(path, run->copy, "paynotifyd.conf");
	join(name, run->provider_name, tenant);
	r = pn_conf_load(path, name, &run->conf, &error);
	if (r == 0) {
		account = pn_conf_account_find(run->conf,
		    pn_str_from(run->provider_name), pn_str_from(tenant));
		if (account == NULL)
			r = pn_error_set(
			    &error, -ENOENT, "no section %s", name);
		else
			r = run->provider->account_open(
			    account, &run->account, &error);
	}
	if (r != 0)
		differ(run, "configuration: %s", error.text);
	return r;
}

static int
verify(struct run *run)
{
	json_int_t at = json_integer_value(json_object_get(run->expect, "at"));
	char path[PATH_BYTES];
	struct pn_request request;
	struct pn_error error = { "" };
	int r;

	join(path, run->copy, "request.http");
	r = read_file(path, &run->raw);
	if (r < 0) {
		differ(run, "request.http: %s", strerrordesc_np(-r));
		return r;
	}
	r = pn_capture_parse(
	    run->arena, pn_buf_str(&run->raw), &request, &error);
	if (r == 0 &&
	    request.body.len > (size_t)run->conf->server.max_body_bytes)
		r = 1;
	if (r > 0) {
		run->notification = (struct pn_notification){
			.verdict = PN_VERDICT_MALFORMED,
			.reason = "not a request, or over a limit",
		};
		return 0;
	}
	if (r == 0)
		r = run->provider->verify(run->account, &request,
		    (int64_t)at * PN_SECOND_US, run->arena, &run->notification);
	if (r < 0)
		differ(run, "out of memory");
	return r;
}

static void
run_copied(struct run *run)
{
	if (for_each(run->dir, FILES_PER_CASE_MAX, copy_one, run) < 0)
		differ(run, "could not list it");
	if (run->differences > 0 || load_expect(run) != 0 ||
	    open_account(run) != 0 || verify(run) != 0)
		return;
	compare(run);
}

/* True when it passed. */
static bool
run_case(const struct pn_provider *provider, const char *dir)
{
	const char *tmp = getenv("TMPDIR");
	struct run run = {
		.provider_name = provider->name,
		.provider = provider,
		.raw = pn_buf_init(PN_CAPTURE_BYTES_MAX * 2),
	};

	(void)snprintf(run.dir, sizeof(run.dir), "%s", dir);
	join(run.copy, tmp == NULL ? "/tmp" : tmp, "pn-golden-XXXXXX");
	if (mkdtemp(run.copy) == NULL) {
		differ(&run, "could not make \"%s\"", run.copy);
		return false;
	}
	run.arena = pn_arena_new(PN_ARENA_BYTES_MAX);
	assert(run.arena != NULL);
	run_copied(&run);
	provider->account_close(run.account);
	pn_conf_unref(run.conf);
	pn_arena_free(run.arena);
	pn_buf_done(&run.raw);
	json_decref(run.expect);
	(void)for_each(run.copy, FILES_PER_CASE_MAX, remove_one, &run);
	(void)rmdir(run.copy);
	return run.differences == 0;
}

/* --- all of them ------------------------------------------------------- */

struct tally {
	const struct pn_provider *provider;
	char dir[PATH_BYTES];
	unsigned passed, failed;
};

static void
visit_case(void *payload, const char *name)
{
	struct tally *tally = payload;
	char dir[PATH_BYTES];

	join(dir, tally->dir, name);
	if (run_case(tally->provider, dir))
		tally->passed++;
	else
		tally->failed++;
}

static bool
run_root(const char *root, struct tally *tally)
{
	unsigned before = tally->passed + tally->failed;

	if (access(root, F_OK) != 0) {
		printf("%s: not there, left out\n", root);
		return true;
	}
	for (size_t i = 0; (tally->provider = pn_provider_at(i)) != NULL; i++) {
		join(tally->dir, root, tally->provider->name);
		(void)for_each(tally->dir, CASES_MAX, visit_case, tally);
	}
	if (tally->passed + tally->failed == before) {
		printf("%s: has no cases\n", root);
		return false;
	}
	return true;
}

int
main(int argc, char **argv)
{
	struct tally tally = { .provider = NULL };
	bool good = argc > 1;

	if (argc < 2)
		fprintf(stderr, "usage: run_golden ROOT...\n");
	for (int i = 1; i < argc; i++)
		good &= run_root(argv[i], &tally);
	printf("%u passed, %u failed\n", tally.passed, tally.failed);
	return good && tally.failed == 0 ? 0 : 1;
}
