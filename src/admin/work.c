/*
 * The threads that ask the database on behalf of the admin port.
 *
 * The server's one thread must never wait, or a slow query would hide whether
 * the daemon is alive. So what needs the database is put into a queue, and two
 * workers take from it. Each has connections of its own, opened when they are
 * first needed and closed when they have been idle for a minute: a port that is
 * only scraped costs the database nothing.
 *
 * Nothing waits for ever: a statement may take TIMEOUT_US, a job may wait
 * WAIT_US for its turn, and at most JOBS_MAX may wait; what is over that is
 * answered 503. When the daemon stops, stop_fd ends what runs at this moment.
 *
 *   put --> queue --worker--> run --> admin_answer()
 */
#include "admin_internal.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "paynotify/log.h"
#include "paynotify/moment.h"

enum {
	WORKERS = 2,
	JOBS_MAX = 16,
};
static const int64_t TIMEOUT_US = 5 * PN_SECOND_US;
static const int64_t WAIT_US = 10 * PN_SECOND_US;
static const int64_t IDLE_US = 60 * PN_SECOND_US;

struct worker {
	struct admin_work *work;
	pthread_t thread;
	struct pn_query *reader, *writer; /* NULL: closed */
	int64_t used_us;                  /* the last time one was asked */
};

struct admin_work {
	char *dsn;
	int stop_fd; /* eventfd: readable once told to stop */
	pthread_mutex_t lock;
	pthread_cond_t changed; /* the queue, or stopping */
	/* Under the lock: */
	struct admin_job *first, *last;
	size_t count;
	bool stopping, closing;
	struct worker workers[WORKERS];
	size_t worker_count;
};

/* -- a worker ---------------------------------------------------------------- */

static void
disconnect(struct worker *worker)
{
	pn_query_close(worker->reader);
	pn_query_close(worker->writer);
	worker->reader = worker->writer = NULL;
}

/* The connection that the route needs, new where the old one has died. */
static int
connect_for(struct worker *worker, struct admin_job *job)
{
	bool writable = job->route->need == ADMIN_NEEDS_WRITING;
	struct pn_query **query = writable ? &worker->writer : &worker->reader;
	const struct pn_query_options options = {
		.writable = writable,
		.stop_fd = worker->work->stop_fd,
		.timeout_us = TIMEOUT_US,
	};
	int r = 0;

	if (*query != NULL && !pn_query_is_alive(*query)) {
		pn_query_close(*query);
		*query = NULL;
	}
	if (*query == NULL)
		r = pn_query_open_with(
		    worker->work->dsn, &options, query, &job->error);
	job->query = *query;
	/* Nothing was asked yet: it is known that nothing was done. */
	return r == -ECONNRESET || r == -ETIMEDOUT ? -ECONNREFUSED : r;
}

/* Whether the connection can go on after that: see query.h. */
static bool
is_usable(int r)
{
	return r >= 0 || r == -EACCES || r == -EPERM || r == -ENOENT ||
	       r == -ETIME || r == -EIO || r == -ENOMEM;
}

static void
run(struct worker *worker, struct admin_job *job)
{
	int r = connect_for(worker, job);

	if (r == 0)
		r = job->route->run(job);
	if (r < 0)
		(void)admin_problem_of_fault(job, r);
	if (!is_usable(r))
		disconnect(worker);
	worker->used_us = pn_clock_monotonic_us();
	admin_answer(job);
}

/* Waits for a job, at most until the idle connections are to be closed. NULL:
 * there is none; *ret_closing: and there will be none. */
static struct admin_job *
take(struct worker *worker, bool *ret_stopping, bool *ret_closing)
{
	struct admin_work *work = worker->work;
	bool connected = worker->reader != NULL || worker->writer != NULL;
	int64_t until_us = worker->used_us + IDLE_US;
	struct timespec until = {
		.tv_sec = until_us / PN_SECOND_US,
		.tv_nsec = until_us % PN_SECOND_US * 1000,
	};
	struct admin_job *job;
	int r = 0;

	(void)pthread_mutex_lock(&work->lock);
	while (work->first == NULL && !work->closing && r == 0)
		r = connected ? pthread_cond_timedwait(
				    &work->changed, &work->lock, &until)
			      : pthread_cond_wait(&work->changed, &work->lock);
	job = work->first;
	if (job != NULL) {
		work->first = job->next;
		assert(work->count > 0);
		work->count--;
	}
	*ret_stopping = work->stopping;
	*ret_closing = work->closing && job == NULL;
	(void)pthread_mutex_unlock(&work->lock);
	return job;
}

static void
answer_stopping(struct admin_job *job)
{
	(void)admin_problem(
	    job, ADMIN_STOPPING, "Nothing was done. Ask again in a moment.");
	admin_answer(job);
}

static void
answer_busy(struct admin_job *job)
{
	(void)admin_problem(job, ADMIN_BUSY,
	    "Nothing was done. Ask again in a moment, and for less at a "
	    "time.");
	admin_answer(job);
}

static void *
worker_main(void *payload)
{
	struct worker *worker = payload;
	bool stopping = false, closing = false;

	while (!closing) {
		struct admin_job *job = take(worker, &stopping, &closing);

		if (job == NULL)
			disconnect(worker);
		else if (stopping)
			answer_stopping(job);
		else if (pn_clock_monotonic_us() - job->queued_us > WAIT_US)
			answer_busy(job);
		else
			run(worker, job);
	}
	return NULL;
}

/* -- the queue --------------------------------------------------------------- */

void
admin_work_put(struct admin_work *work, struct admin_job *job)
{
	bool full, stopping;

	job->queued_us = pn_clock_monotonic_us();
	job->next = NULL;
	(void)pthread_mutex_lock(&work->lock);
	stopping = work->stopping;
	full = work->count == JOBS_MAX;
	if (!stopping && !full) {
		if (work->first == NULL)
			work->first = job;
		else
			work->last->next = job;
		work->last = job;
		work->count++;
		(void)pthread_cond_signal(&work->changed);
	}
	(void)pthread_mutex_unlock(&work->lock);
	if (stopping)
		answer_stopping(job);
	else if (full)
		answer_busy(job);
}

/* -- life -------------------------------------------------------------------- */

static int
init_cond(pthread_cond_t *cond)
{
	pthread_condattr_t attr;
	int r = pthread_condattr_init(&attr);

	if (r != 0)
		return -r;
	r = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	if (r == 0)
		r = pthread_cond_init(cond, &attr);
	(void)pthread_condattr_destroy(&attr);
	return -r;
}

static int
start_workers(struct admin_work *work)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < WORKERS; i++) {
		struct worker *worker = &work->workers[i];

		worker->work = work;
		r = -pthread_create(&worker->thread, NULL, worker_main, worker);
		work->worker_count += r == 0;
	}
	return r;
}

int
admin_work_open(
    const char *dsn, struct admin_work **ret_work, struct pn_error *ret_error)
{
	struct admin_work *work = calloc(1, sizeof(*work));
	int r;

	if (work == NULL)
		return pn_error_set(ret_error, -ENOMEM, "out of memory");
	(void)pthread_mutex_init(&work->lock, NULL);
	r = init_cond(&work->changed);
	if (r < 0) {
		(void)pthread_mutex_destroy(&work->lock);
		free(work);
		return pn_error_set(ret_error, r, "out of memory");
	}
	work->dsn = strdup(dsn);
	work->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = work->dsn == NULL ? -ENOMEM : work->stop_fd < 0 ? -errno : 0;
	if (r == 0)
		r = start_workers(work);
	if (r < 0) {
		admin_work_close(work);
		return pn_error_set(ret_error, r,
		    "could not start the admin port's threads: %s",
		    strerrordesc_np(-r));
	}
	*ret_work = work;
	return 0;
}

static void
tell(struct admin_work *work, bool closing)
{
	const uint64_t one = 1;

	(void)pthread_mutex_lock(&work->lock);
	work->stopping = true;
	work->closing = closing;
	(void)pthread_cond_broadcast(&work->changed);
	(void)pthread_mutex_unlock(&work->lock);
	if (work->stop_fd >= 0 &&
	    write(work->stop_fd, &one, sizeof(one)) != sizeof(one))
		pn_log_err("could not stop the admin port's queries: %m");
}

void
admin_work_stop(struct admin_work *work)
{
	tell(work, false);
}

void
admin_work_close(struct admin_work *work)
{
	if (work == NULL)
		return;
	tell(work, true);
	for (size_t i = 0; i < work->worker_count; i++)
		(void)pthread_join(work->workers[i].thread, NULL);
	assert(work->first == NULL);
	if (work->stop_fd >= 0)
		(void)close(work->stop_fd);
	(void)pthread_cond_destroy(&work->changed);
	(void)pthread_mutex_destroy(&work->lock);
	free(work->dsn);
	free(work);
}
