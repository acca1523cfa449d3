/* SPDX-License-Identifier: BSD-3-Clause
 * Fuzzes the reader of host lists.
 */
#include <stdlib.h>
#include <string.h>

#include "planner/layout/hostlist.h"
#include "tests/fuzz/fuzz.h"

static int take(void *arg, const char *name, struct mf_error *err)
{
    size_t *count = arg;

    (void)err;
    if (strlen(name) >= MF_HOST_TEXT || ++*count > 1000)
        abort();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    struct mf_error err = {0};
    size_t count = 0;

    if (!text)
        abort();
    if (size)
        memcpy(text, data, size);
    text[size] = 0;
    if (mf_hostlist_each(text, 1000, take, &count, &err) < 0 &&
        (!err.text[0] || strchr(err.text, '\n')))
        abort();
    free(text);
    return 0;
}
