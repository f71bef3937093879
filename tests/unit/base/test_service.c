/*
 * What systemd is told. If these fail, a start hangs until its timeout, or a
 * status text turns into a command.
 */
#include "paynotify/service.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

struct manager {
	char folder[32];
	struct sockaddr_un address;
	int fd;
};

static void
manager_open(struct manager *manager)
{
	(void)snprintf(
	    manager->folder, sizeof(manager->folder), "/tmp/pn_service_XXXXXX");
	assert_non_null(mkdtemp(manager->folder));
	manager->address.sun_family = AF_UNIX;
	(void)snprintf(manager->address.sun_path,
	    sizeof(manager->address.sun_path), "%s/notify", manager->folder);
	manager->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_true(manager->fd >= 0);
	assert_int_equal(bind(manager->fd, (struct sockaddr *)&manager->address,
			     sizeof(manager->address)),
	    0);
	assert_int_equal(
	    setenv("NOTIFY_SOCKET", manager->address.sun_path, 1), 0);
}

static void
manager_close(struct manager *manager)
{
	(void)unsetenv("NOTIFY_SOCKET");
	(void)close(manager->fd);
	(void)unlink(manager->address.sun_path);
	(void)rmdir(manager->folder);
}

static void
assert_told(struct manager *manager, const char *expected)
{
	char text[1024];
	ssize_t len = recv(manager->fd, text, sizeof(text) - 1, MSG_DONTWAIT);

	assert_true(len > 0);
	text[len] = '\0';
	assert_string_equal(text, expected);
}

/* With a number between the two. */
static void
assert_told_that(struct manager *manager, const char *head, const char *tail)
{
	char text[1024];
	ssize_t len = recv(manager->fd, text, sizeof(text) - 1, MSG_DONTWAIT);
	size_t digits;

	assert_true(len > 0);
	text[len] = '\0';
	assert_memory_equal(text, head, strlen(head));
	digits = strspn(text + strlen(head), "0123456789");
	assert_true(digits > 0);
	assert_string_equal(text + strlen(head) + digits, tail);
}

/* Readiness never told, or told with a line that a stranger wrote. */
static void
test_service__tells_state_and_one_line_of_status(void **state)
{
	struct manager manager;

	(void)state;
	manager_open(&manager);
	pn_service_ready("serving 2 accounts");
	assert_told(&manager, "READY=1\nSTATUS=serving 2 accounts");
	pn_service_status("down: x\nMAINPID=1\r");
	assert_told(&manager, "\nSTATUS=down: x MAINPID=1 ");
	pn_service_reloading();
	assert_told_that(
	    &manager, "RELOADING=1\nMONOTONIC_USEC=", "\nSTATUS=reloading");
	pn_service_stopping();
	assert_told(&manager, "STOPPING=1\nSTATUS=stopping");
	manager_close(&manager);
}

/* Outside systemd nothing may happen. */
static void
test_service__is_silent_outside_a_service(void **state)
{
	(void)state;
	(void)unsetenv("NOTIFY_SOCKET");
	pn_service_ready("x");
	pn_service_status("x");
	pn_service_stopping();
}

static void
set(const char *name, const char *value)
{
	assert_int_equal(setenv(name, value, 1), 0);
}

/* sd_listen_fds() wants them open, whatever they are. */
static void
open_from_3(int count)
{
	for (int fd = 3; fd < 3 + count; fd++)
		assert_int_equal(dup2(STDIN_FILENO, fd), fd);
}

/* Payments on the admin port, or a socket that nobody serves. */
static void
test_service__sockets_go_by_name(void **state)
{
	char pid[16];
	int fds[4] = { 0 };

	(void)state;
	(void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
	set("LISTEN_PID", pid);
	set("LISTEN_FDS", "4");
	set("LISTEN_FDNAMES", "guard:my.socket:admin:notify");
	open_from_3(4);
	assert_int_equal(pn_service_sockets(PN_SOCKET_GUARD, fds, 4), 1);
	assert_int_equal(fds[0], 3);
	assert_int_equal(pn_service_sockets(PN_SOCKET_ADMIN, fds, 4), 1);
	assert_int_equal(fds[0], 5);
	assert_int_equal(pn_service_sockets(PN_SOCKET_NOTIFY, fds, 4), 2);
	assert_int_equal(fds[0], 4);
	assert_int_equal(fds[1], 6);
	/* More than there is room for are counted. */
	fds[1] = -1;
	assert_int_equal(pn_service_sockets(PN_SOCKET_NOTIFY, fds, 1), 2);
	assert_int_equal(fds[1], -1);
	/* Those of another process are not ours. */
	set("LISTEN_PID", "1");
	assert_int_equal(pn_service_sockets(PN_SOCKET_NOTIFY, fds, 4), 0);
	for (int fd = 3; fd < 7; fd++)
		(void)close(fd);
}

/* Told too seldom, it is killed while it works. */
static void
test_service__watchdog_is_fed_twice_in_its_time(void **state)
{
	struct manager manager;

	(void)state;
	(void)unsetenv("WATCHDOG_PID");
	(void)unsetenv("WATCHDOG_USEC");
	assert_int_equal(pn_service_watchdog_us(), 0);
	set("WATCHDOG_USEC", "30000000");
	assert_int_equal(pn_service_watchdog_us(), 15000000);
	set("WATCHDOG_PID", "1");
	assert_int_equal(pn_service_watchdog_us(), 0);
	manager_open(&manager);
	pn_service_alive();
	assert_told(&manager, "WATCHDOG=1");
	manager_close(&manager);
}

/* A signal is lost, or time that is over is taken for one. */
static void
test_service__waits_for_a_signal_or_the_time(void **state)
{
	sigset_t signals;

	(void)state;
	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGUSR1);
	(void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
	assert_int_equal(pn_service_signal(&signals, 1), 0);
	(void)raise(SIGUSR1);
	assert_int_equal(pn_service_signal(&signals, 0), SIGUSR1);
	(void)raise(SIGUSR1);
	assert_int_equal(pn_service_signal(&signals, 60000000), SIGUSR1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    test_service__tells_state_and_one_line_of_status),
		cmocka_unit_test(test_service__is_silent_outside_a_service),
		cmocka_unit_test(test_service__sockets_go_by_name),
		cmocka_unit_test(
		    test_service__watchdog_is_fed_twice_in_its_time),
		cmocka_unit_test(test_service__waits_for_a_signal_or_the_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
