/* SPDX-License-Identifier: BSD-3-Clause
 * Values from a plan or a user on their way into a job script.
 */
#include "config.h"

#include "launcher/quote.h"

#include <stdbool.h>
#include <string.h>

#define VALUE_MAX 1024

static bool is_control(char c)
{
    return (unsigned char)c < ' ' || c == 127;
}

void mfl_quote_shell(const char *text, FILE *out)
{
    fputc('\'', out);
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", out);
        else
            fputc(*text, out);
    }
    fputc('\'', out);
}

static bool is_plain(const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789._-+:/%@,=";

    return text[strspn(text, plain)] == 0;
}

void mfl_quote_sbatch(const char *text, FILE *out)
{
    if (is_plain(text)) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

void mfl_quote_comment(const char *text, FILE *out)
{
    for (; *text; text++)
        fputc(is_control(*text) ? '?' : *text, out);
}

int mfl_quote_check(const char *option, const char *text, struct mf_error *err)
{
    if (!*text)
        return mf_error_set(err, MF_INVALID,
            "--%s: its value is empty; leave the option out", option);
    if (strlen(text) > VALUE_MAX)
        return mf_error_set(err, MF_INVALID,
            "--%s: its value has more than %d bytes", option, VALUE_MAX);
    for (const char *c = text; *c; c++)
        if (is_control(*c))
            return mf_error_set(err, MF_INVALID,
                "--%s: a control character in '%.100s'; an #SBATCH line "
                "holds none",
                option, text);
    return 0;
}
