/*
 * A main for fuzz targets where there is no libFuzzer: every file of the given
 * files and folders is run once as it is, and once cut at each of its first
 * bytes, since the end of the input in a surprising place is what parsers get
 * wrong most. So the seeds are an ordinary test, and a crash that a fuzzer has
 * found is repeated under a debugger:
 *
 *   build/debug/tests/fuzz_form tests/fuzz/seeds/form crash-0123
 *
 * It mutates nothing else; finding new inputs is libFuzzer's work. An input is
 * copied to a block of its own length, so that a sanitizer sees a read past it.
 */
#include "fuzz.h"

#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	FILE_BYTES_MAX = 4 << 20,
	CUTS_MAX = 2048,
	PATHS_MAX = 1024,
};

static int
run(const char *bytes, size_t len)
{
	uint8_t *copy = malloc(len == 0 ? 1 : len);
	int r;

	if (copy == NULL)
		return -1;
	if (len > 0)
		memcpy(copy, bytes, len);
	r = LLVMFuzzerTestOneInput(copy, len);
	free(copy);
	return r;
}

static int
replay_file(const char *path)
{
	char *bytes = malloc(FILE_BYTES_MAX);
	FILE *file = fopen(path, "rb");
	size_t len = 0;
	int r = -1;

	if (bytes == NULL || file == NULL)
		goto out;
	len = fread(bytes, 1, FILE_BYTES_MAX, file);
	if (ferror(file) || !feof(file))
		goto out;
	r = run(bytes, len);
	for (size_t cut = 0; r == 0 && cut < len && cut < CUTS_MAX; cut++)
		r = run(bytes, cut);
out:
	if (r != 0)
		fprintf(stderr, "%s: could not be replayed\n", path);
	if (file != NULL)
		(void)fclose(file);
	free(bytes);
	return r;
}

int
main(int argc, char **argv)
{
	FTSENT *entry;
	size_t files = 0;
	FTS *tree;
	int r = 0;

	if (argc < 2 || argc > PATHS_MAX) {
		fprintf(stderr, "usage: %s FILE_OR_FOLDER...\n", argv[0]);
		return 2;
	}
	tree = fts_open(argv + 1, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	if (tree == NULL)
		return 2;
	while ((entry = fts_read(tree)) != NULL) {
		if (entry->fts_info == FTS_F) {
			if (replay_file(entry->fts_accpath) != 0)
				r = 1;
			files++;
		} else if (entry->fts_info == FTS_NS ||
			   entry->fts_info == FTS_ERR ||
			   entry->fts_info == FTS_DNR) {
			fprintf(stderr, "%s: not readable\n", entry->fts_path);
			r = 1;
		}
	}
	(void)fts_close(tree);
	printf("%zu files replayed\n", files);
	/* A test over nothing must not be green. */
	return files == 0 ? 1 : r;
}
