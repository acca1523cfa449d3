/* SPDX-License-Identifier: BSD-3-Clause
 * Quoting: what a real shell makes of quoted values, and #SBATCH values.
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

#include "launcher/process.h"
#include "launcher/quote.h"

static char *quoted(
    const char *text, void (*quote)(const char *text, FILE *out))
{
    char *result = NULL;
    size_t size;
    FILE *out = open_memstream(&result, &size);

    quote(text, out);
    fclose(out);
    return result;
}

/* A shell prints the quoted word; it must be TEXT again. */
static void survives_a_shell(const char *shell, const char *text)
{
    char *word = quoted(text, mfl_quote_shell), *script = NULL, *output = NULL;
    char *env[] = {"PATH=/usr/bin:/bin", NULL};
    struct mf_error err = {0};
    int status;

    assert_true(asprintf(&script, "value=%s\nprintf %%s \"$value\"", word) > 0);
    {
        char *argv[] = {(char *)shell, "-euc", script, NULL};

        if (mfl_process_run(argv, env, &output, &status, &err) < 0)
            fail_msg("%s", err.text);
    }
    assert_int_equal(status, 0);
    assert_string_equal(output ? output : "", text);
    free(word);
    free(script);
    free(output);
}

static void test_shell(void **state)
{
    static const char *const hard[] = {"plain", "two words", "it's", "''",
        "a\"b", "$(touch /tmp/moefold-quote-was-run)", "`id`", "$HOME",
        "back\\slash", "end\\", "line\nbreak", "-n", "--", "*", "~", "a;b|c&d",
        "#no", "!x", "\t", "caf\xc3\xa9", "%s%n", "'; exit 3; '"};

    (void)state;
    for (size_t i = 0; i < sizeof hard / sizeof *hard; i++) {
        survives_a_shell("/bin/sh", hard[i]);
        survives_a_shell("/bin/bash", hard[i]);
    }
}

static void sbatch_word(const char *text, const char *want)
{
    char *word = quoted(text, mfl_quote_sbatch);

    assert_string_equal(word, want);
    free(word);
}

static void test_sbatch(void **state)
{
    (void)state;
    sbatch_word("gpu", "gpu");
    sbatch_word("%x_%j.out", "%x_%j.out");
    sbatch_word("two words", "\"two words\"");
    sbatch_word("it's", "\"it's\"");
    sbatch_word("a\"b\\c", "\"a\\\"b\\\\c\"");
    sbatch_word("a#b", "\"a#b\"");
}

static void test_comment(void **state)
{
    char *text = quoted("plan\nrm -rf /\r\x1b[0m", mfl_quote_comment);

    (void)state;
    assert_string_equal(text, "plan?rm -rf /??[0m");
    free(text);
}

static void test_check(void **state)
{
    struct mf_error err = {0};
    char many[1100];

    (void)state;
    assert_int_equal(mfl_quote_check("account", "a b'c", &err), 0);
    assert_int_equal(mfl_quote_check("account", "a\n#SBATCH -p x", &err), -1);
    assert_int_equal(err.status, MF_INVALID);
    assert_non_null(strstr(err.text, "--account"));
    assert_null(strchr(err.text, '\n'));
    assert_int_equal(mfl_quote_check("account", "", &err), -1);
    assert_int_equal(mfl_quote_check("account", "a\x7f", &err), -1);
    memset(many, 'a', sizeof many - 1);
    many[sizeof many - 1] = 0;
    assert_int_equal(mfl_quote_check("account", many, &err), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shell),
        cmocka_unit_test(test_sbatch),
        cmocka_unit_test(test_comment),
        cmocka_unit_test(test_check),
    };

    return cmocka_run_group_tests_name("quote", tests, NULL, NULL);
}
