/*
 * The end of accepting while threads of libmicrohttpd wake up.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "http_internal.h"

enum { THREADS = 4, CLIENTS = 32, ROUNDS = 200 };

/* What a worker that lost the race sees, before anything ends: a fault. */
static void
test_quiesce__until_then_a_wrong_removal_is_told(void **state)
{
	int epfd = epoll_create1(EPOLL_CLOEXEC),
	    fd = socket(AF_INET, SOCK_STREAM, 0);

	(void)state;
	assert_int_equal(epoll_ctl(epfd, EPOLL_CTL_DEL, fd, NULL), -1);
	assert_int_equal(errno, ENOENT);
	(void)close(fd);
	(void)close(epfd);
}

static enum MHD_Result
answer(void *cls, struct MHD_Connection *connection, const char *url,
    const char *method, const char *version, const char *upload,
    size_t *upload_len, void **request)
{
	(void)cls, (void)connection, (void)url, (void)method, (void)version;
	(void)upload, (void)upload_len, (void)request;
	return MHD_NO;
}

static struct MHD_Daemon *
start(struct sockaddr_in *ret_address)
{
	socklen_t len = sizeof(*ret_address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	struct MHD_Daemon *daemon;

	*ret_address = (struct sockaddr_in){ .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	assert_int_equal(
	    bind(fd, (struct sockaddr *)ret_address, sizeof(*ret_address)), 0);
	assert_int_equal(listen(fd, CLIENTS), 0);
	assert_int_equal(
	    getsockname(fd, (struct sockaddr *)ret_address, &len), 0);
	daemon = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC,
	    0, NULL, NULL, answer, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
	    MHD_OPTION_THREAD_POOL_SIZE, (unsigned)THREADS, MHD_OPTION_END);
	assert_non_null(daemon);
	return daemon;
}

/* Threads that wake up for connections while the daemon is told to accept none:
 * without pn_quiesce() libmicrohttpd aborts in about one of 200 rounds. */
static void
test_quiesce__threads_that_wake_up_harm_nothing(void **state)
{
	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		struct sockaddr_in address;
		struct MHD_Daemon *daemon = start(&address);
		int fds[CLIENTS], listening;

		for (int i = 0; i < CLIENTS; i++) {
			fds[i] =
			    socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
			(void)connect(fds[i], (struct sockaddr *)&address,
			    sizeof(address));
		}
		listening = pn_quiesce(daemon);
		MHD_stop_daemon(daemon);
		assert_true(listening >= 0);
		(void)close(listening);
		for (int i = 0; i < CLIENTS; i++)
			(void)close(fds[i]);
	}
}

static void
test_quiesce__a_removal_that_came_second_is_done(void **state)
{
	int epfd = epoll_create1(EPOLL_CLOEXEC),
	    fd = socket(AF_INET, SOCK_STREAM, 0);
	struct epoll_event event = { .events = EPOLLIN };

	(void)state;
	assert_int_equal(epoll_ctl(epfd, EPOLL_CTL_DEL, fd, NULL), 0);
	/* All else as the kernel says. */
	assert_int_equal(epoll_ctl(epfd, EPOLL_CTL_MOD, fd, &event), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(epoll_ctl(epfd, EPOLL_CTL_DEL, -1, NULL), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event), 0);
	assert_int_equal(epoll_ctl(epfd, EPOLL_CTL_DEL, fd, NULL), 0);
	(void)close(fd);
	(void)close(epfd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    test_quiesce__until_then_a_wrong_removal_is_told),
		cmocka_unit_test(
		    test_quiesce__threads_that_wake_up_harm_nothing),
		cmocka_unit_test(
		    test_quiesce__a_removal_that_came_second_is_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
