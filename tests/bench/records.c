/*
 * Prepared requests: the file is mapped once and never copied, so that sending
 * costs the generator a write and no more. A file that is cut or is something
 * else ends the program: a benchmark of garbage would measure refusals.
 */
#include "load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "paynotify/parse.h"
#include "paynotify/str.h"

void
load_die(const char *what)
{
	(void)fprintf(stderr, "load: %s: %s\n", what, strerrordesc_np(errno));
	exit(1);
}

static struct pn_str
map(const char *path)
{
	struct stat st;
	char *data;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0)
		load_die(path);
	data = mmap(NULL, (size_t)st.st_size, PROT_READ,
	    MAP_PRIVATE | MAP_POPULATE, fd, 0);
	if (data == MAP_FAILED)
		load_die(path);
	(void)close(fd);
	return (struct pn_str){ data, (size_t)st.st_size };
}

/* Cuts one record off; false when the file does not go on like that. */
static bool
next(struct pn_str *rest, struct load_record *ret_record)
{
	struct pn_str line = pn_str_split(rest, '\n');
	struct pn_str mark = pn_str_split(&line, ' ');
	struct pn_str len_text = pn_str_split(&line, ' ');
	struct pn_str kind = pn_str_split(&line, ' ');
	uint64_t len, trade;

	if (!pn_str_is(mark, "R") || kind.len != 1 || rest->data == NULL ||
	    pn_parse_uint(len_text, rest->len, &len) != 0 ||
	    pn_parse_uint(line, UINT32_MAX, &trade) != 0)
		return false;
	*ret_record = (struct load_record){ rest->data, (uint32_t)len,
		(uint32_t)trade, kind.data[0] };
	rest->data += len;
	rest->len -= len;
	return true;
}

struct load_record *
load_records(const char *path, size_t skip, size_t max, size_t *ret_count)
{
	struct pn_str rest = map(path);
	struct load_record *records = NULL, record;
	size_t count = 0, room = 0, seen = 0;

	while (rest.len > 0 && count < max) {
		if (!next(&rest, &record)) {
			(void)fprintf(
			    stderr, "load: %s: bad record %zu\n", path, seen);
			exit(1);
		}
		if (seen++ < skip)
			continue;
		if (count == room) {
			room = room == 0 ? 4096 : room * 2;
			records = reallocarray(records, room, sizeof(*records));
			if (records == NULL)
				load_die("records");
		}
		records[count++] = record;
	}
	*ret_count = count;
	return records;
}
