/* SPDX-License-Identifier: BSD-3-Clause
 * Host lists: what Slurm makes of them, as printed by Slurm itself, and
 * libslurm on random lists where it is built in.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_SLURM
#include <slurm/slurm.h>
#endif

#include "planner/layout/hostlist.h"

#define JOINED_MAX ((size_t)4 << 20)

struct joined {
    char *text;
    size_t used, count;
};

static int join(void *arg, const char *name, struct mf_error *err)
{
    struct joined *j = arg;
    size_t n = strlen(name);

    (void)err;
    if (j->used + n + 2 > JOINED_MAX)
        return -1;
    if (j->count++)
        j->text[j->used++] = ',';
    memcpy(j->text + j->used, name, n + 1);
    j->used += n;
    return 0;
}

static int expand(
    const char *text, size_t most, struct joined *j, struct mf_error *err)
{
    *j = (struct joined){.text = malloc(JOINED_MAX)};
    assert_non_null(j->text);
    j->text[0] = 0;
    return mf_hostlist_each(text, most, join, j, err);
}

/* The table says what 22.05 and 26.11 made of each expression. We take what
 * the newer one takes.
 */
static void check_row(char *line)
{
    enum { EXPRESSION, STATUS, COUNT, HOSTS, STATUS_NEW, HOSTS_NEW, FIELDS };
    char *field[FIELDS + 2] = {NULL};
    struct mf_error err = {0};
    struct joined j;
    bool same, valid;
    int rc;

    for (int i = 0; i < FIELDS; i++)
        assert_non_null(field[i] = strsep(&line, "\t"));
    same = !strcmp(field[STATUS_NEW], "same");
    valid = !strcmp(field[same ? STATUS : STATUS_NEW], "ok");
    rc = expand(field[EXPRESSION], 0, &j, &err);
    if (rc != (valid ? 0 : -1))
        fail_msg("%s: %s", field[EXPRESSION], rc ? err.text : "accepted");
    if (valid)
        assert_string_equal(j.text, field[same ? HOSTS : HOSTS_NEW]);
    else
        assert_int_equal(err.status, MF_INVALID);
    free(j.text);
}

static void test_table(void **state)
{
    const char *folder = getenv("MOEFOLD_SRCDIR");
    char path[4096], line[8192];
    int rows = 0;
    FILE *file;

    (void)state;
    snprintf(path, sizeof path, "%s/tests/data/topology/hostlists.tsv",
        folder ? folder : ".");
    file = fopen(path, "re");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        check_row(line);
        rows++;
    }
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rows, 33);
}

static void refused(const char *text, size_t most, const char *why)
{
    struct mf_error err = {0};
    struct joined j;

    assert_int_equal(expand(text, most, &j, &err), -1);
    assert_int_equal(err.status, MF_INVALID);
    if (!strstr(err.text, why))
        fail_msg("'%s' is refused with: %s", text, err.text);
    free(j.text);
}

static void test_bounds(void **state)
{
    struct mf_error err = {0};
    struct joined j;
    char long_name[400];

    (void)state;
    assert_int_equal(expand("n[1-65536]", 0, &j, &err), 0);
    assert_int_equal(j.count, 65536);
    free(j.text);
    assert_int_equal(expand("n[1-100000]", 100000, &j, &err), 0);
    assert_int_equal(j.count, 100000);
    free(j.text);
    refused("n[1-100000]", 0, "65536");
    refused("n[1-3]", 2, "2 hosts");
    refused("n[0-999999999999999999]", 0, "65536");
    refused("n[0-9999999999999999999]", 0, "rising");
    refused("n[0-9][0-9][0-9][0-9][0-9]", 0, "65536");
    refused("[1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1]", 0, "many");
    refused("", 0, "empty");
    memset(long_name, 'a', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    refused(long_name, 0, "too long");
}

static void test_stops_when_told(void **state)
{
    struct joined j = {.text = NULL, .used = JOINED_MAX};

    (void)state;
    assert_int_equal(mf_hostlist_each("n[1-3]", 0, join, &j, NULL), -1);
    assert_int_equal(j.count, 0);
}

#ifdef HAVE_SLURM

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

static int random_range(char *text, size_t size, uint64_t *seed)
{
    int width = 1 + (int)(next_random(seed) % 3);
    unsigned first = (unsigned)(next_random(seed) % 120);

    if (next_random(seed) % 2)
        return snprintf(text, size, "%0*u", width, first);
    return snprintf(text, size, "%0*u-%0*u", width, first, width,
        first + (unsigned)(next_random(seed) % 9));
}

/* Up to four names with up to three brackets of up to three ranges each. */
static void random_list(char *text, size_t size, uint64_t *seed)
{
    size_t used = 0;
    int items = 1 + (int)(next_random(seed) % 4);

    text[0] = 0;
    for (int i = 0; i < items; i++) {
        int brackets = (int)(next_random(seed) % 4);

        used += (size_t)snprintf(text + used, size - used, "%s%c%c",
            i ? "," : "", 'a' + (char)(next_random(seed) % 3),
            next_random(seed) % 2 ? '-' : 'x');
        for (int b = 0; b < brackets; b++) {
            int ranges = 1 + (int)(next_random(seed) % 3);

            for (int r = 0; r < ranges; r++) {
                used += (size_t)snprintf(
                    text + used, size - used, "%c", r ? ',' : '[');
                used += (size_t)random_range(text + used, size - used, seed);
            }
            used += (size_t)snprintf(text + used, size - used, "]%s",
                b < brackets - 1 && next_random(seed) % 2 ? "r" : "");
        }
    }
}

static void test_random_against_libslurm(void **state)
{
    uint64_t seed = 20220508;
    char text[1024];

    (void)state;
    for (int i = 0; i < 2000; i++) {
        struct joined j, want = {.text = malloc(JOINED_MAX)};
        struct mf_error err = {0};
        hostlist_t list;
        char *host;

        random_list(text, sizeof text, &seed);
        list = slurm_hostlist_create(text);
        assert_non_null(list);
        assert_non_null(want.text);
        while ((host = slurm_hostlist_shift(list))) {
            assert_int_equal(join(&want, host, NULL), 0);
            free(host);
        }
        if (expand(text, 0, &j, &err) < 0)
            fail_msg("%s: %s", text, err.text);
        if (strcmp(j.text, want.text))
            fail_msg("%s: %.200s, not %.200s", text, j.text, want.text);
        slurm_hostlist_destroy(list);
        free(j.text);
        free(want.text);
    }
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_stops_when_told),
#ifdef HAVE_SLURM
        cmocka_unit_test(test_random_against_libslurm),
#endif
    };

    return cmocka_run_group_tests_name("hostlist", tests, NULL, NULL);
}
