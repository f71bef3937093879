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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    test_service__tells_state_and_one_line_of_status),
		cmocka_unit_test(test_service__is_silent_outside_a_service),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
