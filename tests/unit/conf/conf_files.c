/*
 * Configuration files for tests, in a folder of their own under /tmp that goes
 * away with the test. Modes are set with fchmod: the umask of who runs the
 * tests changes nothing.
 */
#include "conf_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int
folder_setup(void **state)
{
	struct folder *folder = calloc(1, sizeof(*folder));

	assert_non_null(folder);
	(void)snprintf(
	    folder->path, sizeof(folder->path), "/tmp/pn-conf-XXXXXX");
	assert_non_null(mkdtemp(folder->path));
	*state = folder;
	return 0;
}

int
folder_teardown(void **state)
{
	struct folder *folder = *state;
	char command[256];

	pn_conf_unref(folder->conf);
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", folder->path);
	assert_int_equal(system(command), 0);
	free(folder);
	return 0;
}

const char *
folder_path(struct folder *folder, const char *name)
{
	(void)snprintf(
	    folder->file, sizeof(folder->file), "%s/%s", folder->path, name);
	return folder->file;
}

void
folder_write(
    struct folder *folder, const char *name, const char *text, unsigned mode)
{
	int fd = open(folder_path(folder, name),
	    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	size_t len = strlen(text);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), (ssize_t)len);
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(close(fd), 0);
}

void
folder_make(struct folder *folder, const char *name, unsigned mode)
{
	const char *path = folder_path(folder, name);

	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chmod(path, mode), 0);
}

int
folder_load(struct folder *folder, const char *only_account)
{
	pn_conf_unrefp(&folder->conf);
	folder->error.text[0] = '\0';
	return pn_conf_load(folder_path(folder, "main.conf"), only_account,
	    &folder->conf, &folder->error);
}

const struct pn_conf *
folder_accept(struct folder *folder, const char *text)
{
	int r;

	folder_write(folder, "main.conf", text, 0600);
	r = folder_load(folder, NULL);
	if (r != 0)
		fail_msg("refused: %s", folder->error.text);
	return folder->conf;
}

void
folder_refuse(struct folder *folder, const char *text, const char *because)
{
	int r;

	folder_write(folder, "main.conf", text, 0600);
	r = folder_load(folder, NULL);
	if (r >= 0)
		fail_msg("accepted: %s", text);
	if (strstr(folder->error.text, because) == NULL)
		fail_msg(
		    "\"%s\" does not say \"%s\"", folder->error.text, because);
}
