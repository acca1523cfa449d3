/* SPDX-License-Identifier: BSD-3-Clause
 * Damaged config.json files: whatever the bytes, the reader ends with a model
 * that is sound or with a message, never with a crash.
 */
#include "tests/unit/model/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SEED UINT64_C(0x6d6f65666f6c64)
#define MUTANTS 6000

/* xorshift64: the same mutants on every machine. */
static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

struct text {
    char bytes[65536];
    size_t size;
};

static void load(const char *name, struct text *text)
{
    FILE *in = fopen(support_data(name), "r");

    assert_non_null(in);
    text->size = fread(text->bytes, 1, sizeof text->bytes, in);
    assert_in_range(text->size, 1, sizeof text->bytes - 1);
    assert_int_equal(fclose(in), 0);
}

/* Damage that keeps the file JSON more often than a random byte does. */
static void mutate_word(struct text *text, uint64_t *state)
{
    static const char *const word[] = {"0", "-1", "null", "true", "[]", "{}",
        "1e308", "\"\"", "9223372036854775807", "-9223372036854775808", "2"};
    const char *w = word[next(state) % (sizeof word / sizeof *word)];
    size_t at = next(state) % text->size, from, to;

    for (from = at; from < text->size && text->bytes[from] != ':'; from++)
        ;
    for (to = from;
         to < text->size && text->bytes[to] != ',' && text->bytes[to] != '\n';
         to++)
        ;
    if (from == text->size || from + 1 + strlen(w) > to || to == text->size)
        return;
    memset(text->bytes + from + 1, ' ', to - from - 1);
    memcpy(text->bytes + from + 1, w, strlen(w));
}

static void mutate(struct text *text, uint64_t *state)
{
    size_t at = next(state) % text->size;

    switch (next(state) % 6) {
    case 0:
        text->bytes[at] = (char)next(state);
        break;
    case 1:
        text->bytes[at] ^= (char)(1 << next(state) % 8);
        break;
    case 2:
        text->size = at + 1;
        break;
    case 3: /* a digit more: a number changes, or a key */
        text->bytes[at] = (char)('0' + next(state) % 10);
        break;
    default:
        mutate_word(text, state);
    }
}

/* A model that was read must be one that its own JSON reads back. */
static void check_model(struct mf_model *model, uint64_t mutant)
{
    json_t *json = mf_model_to_json(model);
    struct mf_error err = {0};
    struct mf_model again;

    if (!json)
        fail_msg("mutant %d has no JSON", (int)mutant);
    if (mf_model_from_json(json, &again, &err))
        fail_msg("mutant %d: %s", (int)mutant, err.text);
    assert_true(model->params.total > 0);
    mf_model_free(&again);
    json_decref(json);
}

static void mutants_never_crash(void **state)
{
    uint64_t random = SEED;
    size_t models = 0, arguments = 0, read = 0;

    (void)state;
    while (support_models[models])
        models++;
    while (support_arguments[arguments])
        arguments++;
    for (uint64_t i = 0; i < MUTANTS; i++) {
        struct mf_error err = {0};
        struct mf_model model;
        struct text text;

        load(i % 5 ? support_models[i % models]
                   : support_arguments[i / 5 % arguments],
            &text);
        for (uint64_t n = 1 + next(&random) % 3; n > 0; n--)
            mutate(&text, &random);
        if (!mf_model_read(support_write("mutant.json", text.bytes, text.size),
                &model, &err)) {
            read++;
            check_model(&model, i);
            mf_model_free(&model);
        } else if (err.status == MF_OK || !strstr(err.text, "mutant.json: ")) {
            fail_msg("mutant %d: status %d, \"%s\"", (int)i, (int)err.status,
                err.text);
        }
    }
    /* The damage is neither always fatal nor always harmless. */
    assert_in_range(read, MUTANTS / 20, MUTANTS * 19 / 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mutants_never_crash),
    };

    return cmocka_run_group_tests_name(
        "model mutants", tests, NULL, support_clean);
}
