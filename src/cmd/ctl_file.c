/*
 * Whole files in and out: captures and keys. Reading is bounded; "-" is
 * standard input or output. It deliberately does not look at permissions: what
 * an operator names on a command line is read with the operator's rights.
 */
#include "ctl.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static bool
is_standard(const char *path)
{
	return strcmp(path, "-") == 0;
}

static int
read_all(int fd, size_t bytes_max, struct pn_buf *ret_bytes)
{
	char block[16 << 10];
	ssize_t n;

	for (;;) {
		n = read(fd, block, sizeof(block));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		if ((size_t)n > bytes_max - ret_bytes->len)
			return 1;
		pn_buf_add(ret_bytes, block, (size_t)n);
		if (pn_buf_failed(ret_bytes))
			return -ENOMEM;
	}
}

int
ctl_file_read(const char *path, size_t bytes_max, struct pn_buf *ret_bytes)
{
	int fd =
	    is_standard(path) ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	r = read_all(fd, bytes_max, ret_bytes);
	if (fd != STDIN_FILENO)
		(void)close(fd);
	return r;
}

static int
write_all(int fd, struct pn_str bytes)
{
	size_t done = 0;

	while (done < bytes.len) {
		ssize_t n = write(fd, bytes.data + done, bytes.len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return 0;
}

int
ctl_file_write(const char *path, struct pn_str bytes)
{
	int fd, r;

	if (is_standard(path)) {
		(void)fflush(stdout);
		return write_all(STDOUT_FILENO, bytes);
	}
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	r = write_all(fd, bytes);
	/* A full disk may show only here. */
	if (close(fd) != 0 && r == 0)
		r = -errno;
	return r;
}
