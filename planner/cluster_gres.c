/* SPDX-License-Identifier: BSD-3-Clause
 * Slurm's GRES texts: how many GPUs of which type.
 */
#include "config.h"

#include "planner/cluster_parts.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define WORDS_MAX 4
#define TYPES_MAX 16
#define GPUS_MAX 1000000

struct type_count {
    char type[48];
    int64_t gpus;
};

struct types {
    struct type_count of[TYPES_MAX];
    int count;
    int64_t gpus;
};

int64_t mf_gres_count(const char *text, size_t length)
{
    int64_t count = 0;
    size_t i;

    for (i = 0; i < length && isdigit((unsigned char)text[i]); i++)
        count = count < GPUS_MAX ? count * 10 + (text[i] - '0') : count;
    if (i == length && i > 0)
        return count;
    if (i > 0 && i + 1 == length && (text[i] == 'K' || text[i] == 'k'))
        return count * 1024;
    return -1;
}

static void types_add(
    struct types *types, const char *type, size_t length, int64_t gpus)
{
    struct type_count *t;
    int i;

    if (length >= sizeof t->type)
        length = sizeof t->type - 1;
    for (i = 0; i < types->count; i++)
        if (strlen(types->of[i].type) == length &&
            !strncasecmp(types->of[i].type, type, length))
            break;
    types->gpus += gpus;
    if (i == TYPES_MAX)
        return;
    t = &types->of[i];
    if (i == types->count) {
        types->count++;
        memcpy(t->type, type, length);
        t->type[length] = 0;
        t->gpus = 0;
    }
    t->gpus += gpus;
}

/* One entry, cut before its "(": gpu[:TYPE][:no_consume][:COUNT]. */
static void entry_read(const char *entry, size_t length, struct types *types)
{
    const char *word[WORDS_MAX], *end = entry + length;
    size_t size[WORDS_MAX];
    int64_t gpus = 1;
    int words = 0;

    for (const char *at = entry; at < end && words < WORDS_MAX;) {
        size_t n = strcspn(at, ":,(");

        if (n > (size_t)(end - at))
            n = (size_t)(end - at);
        word[words] = at;
        size[words++] = n;
        at += n + 1;
    }
    if (words == 0 || size[0] != 3 || strncasecmp(word[0], "gpu", 3) != 0)
        return;
    if (words > 1 && mf_gres_count(word[words - 1], size[words - 1]) >= 0) {
        words--;
        gpus = mf_gres_count(word[words], size[words]);
    }
    for (int i = 1; i < words; i++)
        if (size[i] != 10 || strncmp(word[i], "no_consume", 10) != 0) {
            types_add(types, word[i], size[i], gpus);
            return;
        }
    types_add(types, "", 0, gpus);
}

static void types_print(const struct types *types, char *text, size_t size)
{
    size_t used = 0;

    text[0] = 0;
    if (types->count == 1) {
        snprintf(text, size, "%s", types->of[0].type);
        return;
    }
    for (int i = 0; i < types->count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s:%lld",
            i ? "," : "", types->of[i].type[0] ? types->of[i].type : "gpu",
            (long long)types->of[i].gpus);
}

int64_t mf_slurm_gres_gpus(const char *gres, char *type, size_t size)
{
    struct types types = {.gpus = 0};

    while (gres && *gres) {
        size_t length = strcspn(gres, ",(");

        entry_read(gres, length, &types);
        gres += length;
        if (*gres == '(')
            gres += strcspn(gres, ")");
        gres += strcspn(gres, ",");
        gres += *gres == ',';
    }
    types_print(&types, type, size);
    return types.gpus > GPUS_MAX ? GPUS_MAX : types.gpus;
}

/* The word that SLURM's states begin with, whatever follows it. */
static bool has_word(const char *text, const char *word)
{
    size_t n = strlen(word);

    for (; *text; text++)
        if (!strncasecmp(text, word, n))
            return true;
    return false;
}

enum mf_node_state mf_slurm_state(const char *text)
{
    static const char *const down[] = {
        "DOWN", "ERROR", "NO_RESPOND", "NOT_RESPONDING", "INVAL"};
    static const char *const not_there[] = {"FUTURE", "UNKNOWN+FUTURE"};

    if (has_word(text, "DRAIN") || has_word(text, "FAIL"))
        return MF_NODE_DRAINED;
    for (size_t i = 0; i < sizeof down / sizeof *down; i++) {
        const char *at = strcasestr(text, down[i]);

        /* POWERED_DOWN and POWERING_DOWN come up when asked. */
        if (at && (at == text || at[-1] == '+'))
            return MF_NODE_DOWN;
    }
    if (strchr(text, '*'))
        return MF_NODE_DOWN;
    for (size_t i = 0; i < sizeof not_there / sizeof *not_there; i++)
        if (!strcasecmp(text, not_there[i]))
            return MF_NODE_UNKNOWN;
    return MF_NODE_UP;
}
