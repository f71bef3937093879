/*
 * Listening sockets. If these fail, the daemon listens where nobody asked it to,
 * opens its admin port to the world, or takes the socket of a running one.
 */
#include "paynotify/server.h"

#include <errno.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <netinet/in.h>

#include <cmocka.h>

#include "paynotify/parse.h"

struct folder {
	char path[32];
	char socket[64]; /* "unix:<path>/s" */
};

static int
folder_make(void **state)
{
	struct folder *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	(void)snprintf(f->path, sizeof(f->path), "/tmp/pnl.XXXXXX");
	assert_non_null(mkdtemp(f->path));
	(void)snprintf(f->socket, sizeof(f->socket), "unix:%s/s", f->path);
	*state = f;
	return 0;
}

static int
folder_remove(void **state)
{
	struct folder *f = *state;

	(void)unlink(f->socket + 5);
	(void)rmdir(f->path);
	free(f);
	return 0;
}

/* A typing error is taken for an address. */
static void
test_listen__odd_addresses_are_refused(void **state)
{
	static const char *const bad[] = { "", "8600", ":8600", "127.0.0.1",
		"127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "127.0.0.1:-1",
		"::1:8600", "[::1]", "[::1:8600", "[]:8600",
		"unix:", "localhost:8600 " };
	struct pn_error error;

	(void)state;
	for (size_t i = 0; i < PN_COUNT(bad); i++)
		assert_int_equal(
		    pn_listen_check(bad[i], false, &error), -EINVAL);
	assert_non_null(strstr(error.text, "could not listen on \"localhost"));
}

/* The admin port is reachable from outside. */
static void
test_listen__local_means_no_other_host(void **state)
{
	static const char *const local[] = { "127.0.0.1:1", "127.9.9.9:1",
		"[::1]:1", "localhost:1", "unix:/run/x" };
	static const char *const open[] = { "0.0.0.0:1", "[::]:1", "10.0.0.1:1",
		"example.org:1", "[2001:db8::1]:1" };
	struct pn_error error;

	(void)state;
	for (size_t i = 0; i < PN_COUNT(local); i++)
		assert_int_equal(pn_listen_check(local[i], true, &error), 0);
	for (size_t i = 0; i < PN_COUNT(open); i++) {
		assert_int_equal(
		    pn_listen_check(open[i], true, &error), -EINVAL);
		assert_non_null(strstr(error.text, "only loopback"));
		assert_int_equal(pn_listen_check(open[i], false, &error), 0);
	}
}

/* The operator reads "no such daemon" instead of what is wrong. */
static void
test_listen__address_in_use_is_said(void **state)
{
	struct pn_listen first, second;
	struct pn_error error;

	(void)state;
	assert_int_equal(
	    pn_listen_open("127.0.0.1:0", false, &first, &error), 0);
	assert_int_equal(
	    pn_listen_open(first.text, false, &second, &error), -EADDRINUSE);
	assert_non_null(strstr(error.text, "could not listen on \"127.0.0.1:"));
	assert_non_null(strstr(error.text, "\": address already in use"));
	pn_listen_close(&first);
}

/* Port 0 is told as 0, and nobody finds the server. */
static void
test_listen__real_port_is_told(void **state)
{
	struct pn_listen listen;
	struct sockaddr_in in = { .sin_family = AF_INET };
	socklen_t len = sizeof(in);
	char text[64];

	(void)state;
	assert_int_equal(pn_listen_open("127.0.0.1:0", true, &listen, NULL), 0);
	assert_int_equal(
	    getsockname(listen.fd, (struct sockaddr *)&in, &len), 0);
	(void)snprintf(
	    text, sizeof(text), "127.0.0.1:%u", (unsigned)ntohs(in.sin_port));
	assert_string_equal(listen.text, text);
	pn_listen_close(&listen);
	pn_listen_close(&listen); /* harmless */
}

/* A daemon that was killed can never start again. */
static void
test_listen__stale_socket_is_replaced(void **state)
{
	struct folder *f = *state;
	struct pn_listen listen;
	struct pn_error error;
	struct stat status;
	int fd;

	assert_int_equal(pn_listen_open(f->socket, true, &listen, &error), 0);
	fd = listen.fd; /* as a crash leaves it */
	assert_int_equal(close(fd), 0);
	assert_int_equal(pn_listen_open(f->socket, true, &listen, &error), 0);
	assert_int_equal(stat(f->socket + 5, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0660);
	pn_listen_close(&listen);
	assert_int_equal(stat(f->socket + 5, &status), -1);
}

/* A second daemon takes the first one's socket away. */
static void
test_listen__live_socket_is_not_taken(void **state)
{
	struct folder *f = *state;
	struct pn_listen first, second;
	struct pn_error error;

	assert_int_equal(pn_listen_open(f->socket, true, &first, &error), 0);
	assert_int_equal(
	    pn_listen_open(f->socket, true, &second, &error), -EADDRINUSE);
	pn_listen_close(&first);
}

/* A wrong path in the configuration deletes a file. */
static void
test_listen__file_that_is_no_socket_is_kept(void **state)
{
	struct folder *f = *state;
	struct pn_listen listen;
	struct pn_error error;
	struct stat status;
	FILE *file = fopen(f->socket + 5, "w");

	assert_non_null(file);
	(void)fclose(file);
	assert_int_equal(
	    pn_listen_open(f->socket, true, &listen, &error), -EEXIST);
	assert_int_equal(stat(f->socket + 5, &status), 0);
}

/* A longer name than the kernel takes is cut: another socket. */
static void
test_listen__long_path_is_refused(void **state)
{
	char address[256] = "unix:/";
	struct pn_error error;

	(void)state;
	memset(address + 6, 'x', 107);
	assert_int_equal(pn_listen_check(address, true, &error), -EINVAL);
	address[6 + 106] = '\0';
	assert_int_equal(pn_listen_check(address, true, &error), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_listen__odd_addresses_are_refused),
		cmocka_unit_test(test_listen__local_means_no_other_host),
		cmocka_unit_test(test_listen__address_in_use_is_said),
		cmocka_unit_test(test_listen__real_port_is_told),
		cmocka_unit_test_setup_teardown(
		    test_listen__stale_socket_is_replaced, folder_make,
		    folder_remove),
		cmocka_unit_test_setup_teardown(
		    test_listen__live_socket_is_not_taken, folder_make,
		    folder_remove),
		cmocka_unit_test_setup_teardown(
		    test_listen__file_that_is_no_socket_is_kept, folder_make,
		    folder_remove),
		cmocka_unit_test(test_listen__long_path_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
