/* SPDX-License-Identifier: BSD-3-Clause
 * Runs a fuzz target without libFuzzer: mutants of the files given, for a
 * number of seconds, in an order that the seed alone decides. The target is
 * the function that libFuzzer calls, so that
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined … fuzz_X.c
 * makes the real thing of the same source.
 *
 * Usage: fuzz_X SECONDS SEED FILE...
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

#define INPUT_MAX ((size_t)1 << 20)
#define HANG_S 20

struct input {
    uint8_t *data;
    size_t size;
};

/* What the inputs have in common, put in here and there. */
static const char *const words[] = {"[", "]", "[1-65536]", "[0-9][0-9]", ",",
    "-", "=", "NodeName=", "Nodes=", "Switches=", "Gres=gpu:8", "DEFAULT",
    "Include ", "\\\n", "#", "\"", "\n", "\t", " ", "NV18", "GPU0", "\033[4m",
    "<", ">", "/>", "<object ", "<pci ", "&amp;", "&#0;", "<!ENTITY", "null",
    "-1", "1e999", "NaN", "999999999999999999999", "\xff", "\xc0\x80", "{", "}",
    "\"nodes\":", ":", "0x", "count=\"", "u64values", "2147483648"};

static volatile sig_atomic_t running;
static uint64_t round_now, seed_given;

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static double now_s(void)
{
    struct timespec t;

    if (clock_gettime(CLOCK_MONOTONIC, &t) != 0)
        return 0;
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fell(int signal_number)
{
    char text[128];
    int n = snprintf(text, sizeof text,
        "# signal %d at round %" PRIu64 " of seed %" PRIu64 "\n", signal_number,
        round_now, seed_given);

    if (write(STDERR_FILENO, text, n > 0 ? (size_t)n : 0) < 0)
        _exit(98);
    _exit(99);
}

static int input_read(const char *path, struct input *input)
{
    FILE *file = fopen(path, "re");

    input->data = malloc(INPUT_MAX);
    if (!file || !input->data) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        if (file)
            fclose(file);
        return -1;
    }
    input->size = fread(input->data, 1, INPUT_MAX, file);
    return fclose(file) != 0 ? -1 : 0;
}

static void insert(struct input *m, size_t at, const void *bytes, size_t n)
{
    if (m->size + n > INPUT_MAX)
        return;
    memmove(m->data + at + n, m->data + at, m->size - at);
    memcpy(m->data + at, bytes, n);
    m->size += n;
}

static void erase(struct input *m, size_t at, size_t n)
{
    n = n > m->size - at ? m->size - at : n;
    memmove(m->data + at, m->data + at + n, m->size - at - n);
    m->size -= n;
}

static void mutate(struct input *m, const struct input *other, uint64_t *state)
{
    size_t at = m->size ? next_random(state) % m->size : 0;
    size_t n = 1 + next_random(state) % 64, from;

    switch (next_random(state) % 8) {
    case 0:
        if (m->size)
            m->data[at] ^= (uint8_t)(1u << next_random(state) % 8);
        break;
    case 1:
        erase(m, at, n);
        break;
    case 2:
        m->size = at;
        break;
    case 3:
        if (m->size)
            m->data[at] = (uint8_t)next_random(state);
        break;
    case 4:
    case 5: {
        const char *word =
            words[next_random(state) % (sizeof words / sizeof *words)];

        insert(m, at, word, strlen(word));
        break;
    }
    case 6: /* a piece of another file */
        from = other->size ? next_random(state) % other->size : 0;
        n = n > other->size - from ? other->size - from : n;
        insert(m, at, other->data + from, n);
        break;
    default: { /* the same piece, many times */
        uint8_t piece[64];

        n = n > m->size - at ? m->size - at : n;
        memcpy(piece, m->data + at, n);
        for (uint64_t i = next_random(state) % 50; i > 0; i--)
            insert(m, at, piece, n);
    }
    }
}

static void rounds_run(
    const struct input *list, size_t count, double seconds, uint64_t seed)
{
    struct input m = {.data = malloc(INPUT_MAX + 1)};
    double end = now_s() + seconds;
    uint64_t state = seed;

    if (!m.data)
        abort();
    for (round_now = 0; running && now_s() < end; round_now++) {
        const struct input *from = &list[next_random(&state) % count];
        const struct input *other = &list[next_random(&state) % count];

        memcpy(m.data, from->data, from->size);
        m.size = from->size;
        for (uint64_t i = next_random(&state) % 6; i > 0; i--)
            mutate(&m, other, &state);
        alarm(HANG_S);
        LLVMFuzzerTestOneInput(m.data, m.size);
    }
    alarm(0);
    free(m.data);
}

int main(int argc, char **argv)
{
    static const int signals[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGALRM};
    size_t count = argc > 3 ? (size_t)argc - 3 : 0;
    struct input *list = calloc(count + 1, sizeof *list);
    int rc = 2;

    if (count == 0 || !list) {
        fprintf(stderr, "usage: %s SECONDS SEED FILE...\n", argv[0]);
        free(list);
        return 2;
    }
    running = 1;
    seed_given = strtoull(argv[2], NULL, 10);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (signal(signals[i], fell) == SIG_ERR)
            goto out;
    for (size_t i = 0; i < count; i++)
        if (input_read(argv[3 + i], &list[i]) < 0)
            goto out;
    rounds_run(list, count, strtod(argv[1], NULL), seed_given);
    printf("%" PRIu64 " mutants of %zu files, seed %" PRIu64 "\n", round_now,
        count, seed_given);
    rc = round_now > 0 ? 0 : 1;
out:
    for (size_t i = 0; i < count; i++)
        free(list[i].data);
    free(list);
    return rc;
}
