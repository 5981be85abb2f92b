/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs every transcript of a directory, each as one test: whole, byte by byte, cut in two behind
 * every byte, and with the peer gone behind every byte. A long one is cut near its ends everywhere
 * and in between at some places, which are the same in every run.
 */
#include "tests/qmp/script.h"

#include <dirent.h>
#include <time.h>

#include "policy/base.h"
#include "tests/tap.h"

#define FILE_MAX 65536
#define LONG ((size_t)8 << 10) /* of what the peer says */
#define ENDS ((size_t)512)
#define BETWEEN 200u

struct cuts {
	const char *name, *text;
	size_t n;
	uint64_t seed;
};

static void cut_at(struct tap *tap_, const struct cuts *c, size_t at)
{
	if (!tap_->failures)
		tap_->failures += script_run(c->name, c->text, SCRIPT_CUT, at).failed;
}

static void hang_up_at(struct tap *tap_, const struct cuts *c, size_t at)
{
	if (!tap_->failures)
		tap_->failures += script_run(c->name, c->text, SCRIPT_HANGUP, at).failed;
}

static size_t random_below(struct cuts *c, size_t n)
{
	c->seed ^= c->seed << 13;
	c->seed ^= c->seed >> 7;
	c->seed ^= c->seed << 17;
	return c->seed % n;
}

static void run_all(struct tap *tap_, const char *text)
{
	struct cuts c = {.name = tap_->name, .text = text, .seed = 20240101};
	struct script_result whole = script_run(c.name, text, SCRIPT_WHOLE, 0);

	c.n = whole.peer_bytes;
	tap_->failures += whole.failed;
	if (!tap_->failures)
		tap_->failures += script_run(c.name, text, SCRIPT_BYTES, 0).failed;
	if (c.n <= LONG) {
		for (size_t at = 0; at < c.n; at++) {
			cut_at(tap_, &c, at);
			hang_up_at(tap_, &c, at);
		}
		return;
	}
	for (size_t i = 0; i < ENDS; i++) {
		cut_at(tap_, &c, i);
		cut_at(tap_, &c, c.n - 1 - i);
	}
	for (unsigned i = 0; i < BETWEEN; i++) {
		size_t at = ENDS + random_below(&c, c.n - 2 * ENDS);

		cut_at(tap_, &c, at);
		hang_up_at(tap_, &c, at);
	}
}

/* NULL: not to be read, or too large. */
static char *read_text(const char *dir, const char *name)
{
	_cleanup_free_ char *path = NULL, *text = calloc(1, FILE_MAX + 1);
	FILE *f;
	size_t n;

	if (!text || asprintf(&path, "%s/%s", dir, name) < 0)
		return NULL;
	f = fopen(path, "re");
	if (!f)
		return NULL;
	n = fread(text, 1, FILE_MAX + 1, f);
	fclose(f);
	return n > FILE_MAX || strlen(text) != n ? NULL : TAKE_PTR(text);
}

static int is_transcript(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return len > 4 && strcmp(entry->d_name + len - 4, ".txt") == 0;
}

static unsigned run_file(const char *dir, const char *file, unsigned number)
{
	_cleanup_free_ char *text = read_text(dir, file), *name = strndup(file, strlen(file) - 4);
	struct tap tap = {.name = name ? name : file};

	if (text)
		run_all(&tap, text);
	else
		tap.failures++;
	printf("%s %u - %s\n", tap.failures ? "not ok" : "ok", number, tap.name);
	return tap.failures ? 1 : 0;
}

/* transcript DIRECTORY [NAME.txt]... */
int main(int argc, char **argv)
{
	struct dirent **entries;
	unsigned failed = 0;
	int n;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 2) {
		printf("1..%d\n", argc - 2);
		for (int i = 2; i < argc; i++)
			failed += run_file(argv[1], argv[i], (unsigned)i - 1);
		return failed ? 1 : 0;
	}
	n = argc == 2 ? scandir(argv[1], &entries, is_transcript, alphasort) : -1;
	if (n <= 0) {
		printf("1..0 # no transcripts\n");
		return 1;
	}
	printf("1..%d\n", n);
	for (int i = 0; i < n; i++) {
		failed += run_file(argv[1], entries[i]->d_name, (unsigned)i + 1);
		free(entries[i]);
	}
	free(entries);
	return failed ? 1 : 0;
}
