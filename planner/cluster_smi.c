/* SPDX-License-Identifier: BSD-3-Clause
 * What `nvidia-smi topo -m` prints: who is joined to whom, and how.
 */
#include "config.h"

#include "planner/cluster_smi.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/cluster_facts.h"

#define WORDS_MAX 256
#define LINKS_MAX 18 /* of one GPU, of any generation so far */
#define NICS_MAX 128

struct table {
    struct mf_facts facts;
    int columns;            /* GPUs and NICs of the header */
    bool is_gpu[WORDS_MAX]; /* of a column */
    int number[WORDS_MAX];  /* the GPU's */
    int links[MF_FACTS_GPUS_MAX][MF_FACTS_GPUS_MAX];
    bool seen[MF_FACTS_GPUS_MAX]; /* its row was there */
    bool near[WORDS_MAX];         /* a NIC: under one PCIe switch with a GPU */
    int gpus, nics, most;         /* most: links of a GPU */
    int words;                    /* of a GPU's row; 0: has no NUMA affinity */
    bool grace;                   /* GPU memory is a NUMA node of its own */
};

/* Escape codes of a terminal, such as that of an underlined header, go. */
static void escapes_drop(char *line)
{
    char *to = line;

    for (const char *from = line; *from; from++) {
        if (from[0] == 27 && from[1] == '[') {
            from += 2 + strspn(from + 2, "0123456789;?");
            if (!*from)
                break;
            continue;
        }
        /* The same with the escape byte lost on the way. */
        if (from[0] == '[' && isdigit((unsigned char)from[1])) {
            size_t n = 1 + strspn(from + 1, "0123456789;");

            if (from[n] == 'm') {
                from += n;
                continue;
            }
        }
        *to++ = *from;
    }
    *to = 0;
}

/* "GPU7" with its number, or -1. */
static int gpu_number(const char *word)
{
    char *end;
    long n;

    if (strncmp(word, "GPU", 3) != 0 || !isdigit((unsigned char)word[3]))
        return -1;
    n = strtol(word + 3, &end, 10);
    return *end || n < 0 || n > 9999 ? -1 : (int)n;
}

static bool is_nic(const char *word)
{
    static const char *const begins[] = {
        "NIC", "mlx", "bnxt", "irdma", "efa", "rdmap", "ibp", "roce", "hfi"};

    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (!strncmp(word, begins[i], strlen(begins[i])) &&
            word[strlen(begins[i])])
            return true;
    return false;
}

static int words_cut(char *line, char **word)
{
    int n = 0;

    for (char *at = line; n < WORDS_MAX;) {
        at += strspn(at, " \t\r");
        if (!*at)
            break;
        word[n++] = at;
        at += strcspn(at, " \t\r");
        if (*at)
            *at++ = 0;
    }
    return n;
}

static int column_of(const struct table *t, int gpu)
{
    for (int i = 0; i < t->columns; i++)
        if (t->is_gpu[i] && t->number[i] == gpu)
            return i;
    return -1;
}

/* How many words a GPU's row has: its paths, then "CPU Affinity", "NUMA
 * Affinity", and of newer drivers "GPU NUMA ID".
 */
static int row_words(char **word, int words, int columns)
{
    static const char *const tail[] = {
        "CPU", "Affinity", "NUMA", "Affinity", "GPU", "NUMA", "ID"};
    int n = words - columns;

    if (n != 4 && n != 7)
        return 0;
    for (int i = 0; i < n; i++)
        if (strcmp(word[columns + i], tail[i]) != 0)
            return 0;
    return 1 + columns + (n == 4 ? 2 : 3);
}

/* The header: GPU and NIC columns up to "CPU Affinity". */
static int header_take(
    struct table *t, char **word, int words, struct mf_error *err)
{
    for (int i = 0; i < words; i++) {
        int gpu = gpu_number(word[i]);

        if (gpu < 0 && !is_nic(word[i]))
            break;
        if (gpu >= 0 &&
            (column_of(t, gpu) >= 0 || t->gpus == MF_FACTS_GPUS_MAX))
            return mf_error_set(err, MF_INVALID,
                "%.20s stands twice in the header, or is one of over %d",
                word[i], MF_FACTS_GPUS_MAX);
        t->is_gpu[t->columns] = gpu >= 0;
        t->number[t->columns++] = gpu;
        t->gpus += gpu >= 0;
        t->nics += gpu < 0;
    }
    t->words = row_words(word, words, t->columns);
    return 0;
}

/* Which of the GPUs the column at COLUMN is. */
static int gpu_index(const struct table *t, int column)
{
    int index = 0;

    for (int i = 0; i < column; i++)
        index += t->is_gpu[i];
    return index;
}

static int cell_take(struct table *t, int gpu, int column, const char *cell,
    struct mf_error *err)
{
    static const char *const known[] = {
        "X", "SYS", "NODE", "PHB", "PXB", "PIX", "SOC", "N/A", "PSB"};
    char *end;
    long n;

    if (!strncmp(cell, "NV", 2) && isdigit((unsigned char)cell[2])) {
        n = strtol(cell + 2, &end, 10);
        if (*end || n < 1 || n > LINKS_MAX * 4 || !t->is_gpu[column])
            return mf_error_set(
                err, MF_INVALID, "GPU%d: %.20s is no path", gpu, cell);
        t->links[gpu][gpu_index(t, column)] = (int)n;
        return 0;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(cell, known[i])) {
            if (!t->is_gpu[column] &&
                (!strcmp(cell, "PIX") || !strcmp(cell, "PXB")))
                t->near[column] = true;
            return 0;
        }
    return mf_error_set(err, MF_INVALID,
        "GPU%d: '%.20s' is none of X, NV#, PIX, PXB, PHB, NODE, SYS", gpu,
        cell);
}

static bool is_number(const char *word)
{
    return word[strspn(word, "0123456789")] == 0;
}

/* "0", or "0,3-9,11-17" where the first is that with the cores and the rest are
 * memories of GPUs (Grace). "0-1" tells none. A row without a CPU affinity has
 * a word less, and which one is missing only tabs would tell.
 */
static void numa_take(struct table *t, int gpu, char **word, int words)
{
    const char *text;
    char *end;
    long n;

    if (t->words == 0 || words != t->words)
        return;
    text = word[1 + t->columns + 1];
    if (!isdigit((unsigned char)*text))
        return;
    n = strtol(text, &end, 10);
    if ((*end == 0 || *end == ',') && n < 65536)
        t->facts.numa[gpu] = (int32_t)n;
}

static int row_take(
    struct table *t, char **word, int words, struct mf_error *err)
{
    int column = column_of(t, gpu_number(word[0])), gpu;

    if (column < 0)
        return mf_error_set(
            err, MF_INVALID, "%.20s is not in the header", word[0]);
    gpu = gpu_index(t, column);
    if (t->seen[gpu])
        return mf_error_set(err, MF_INVALID, "%.20s stands twice", word[0]);
    if (words < 1 + t->columns)
        return mf_error_set(err, MF_INVALID,
            "%.20s has %d paths, not %d: the row is cut off", word[0],
            words - 1, t->columns);
    t->seen[gpu] = true;
    for (int i = 0; i < t->columns; i++)
        if (cell_take(t, gpu, i, word[1 + i], err) < 0)
            return -1;
    /* CPU and NUMA affinity, then the GPU's own NUMA node or N/A. */
    if (words >= 1 + t->columns + 3 && is_number(word[words - 1]))
        t->grace = true;
    numa_take(t, gpu, word, words);
    return 0;
}

/* ---- what the table means ---- */

/* Links of a GPU: behind a switch each peer shows all of them. */
static int links_of(const struct table *t, int gpu, bool *behind_switch)
{
    int sum = 0, most = 0;

    for (int i = 0; i < t->gpus; i++) {
        sum += t->links[gpu][i];
        most = t->links[gpu][i] > most ? t->links[gpu][i] : most;
    }
    *behind_switch = sum > LINKS_MAX;
    return *behind_switch ? most : sum;
}

/* The figures of the table hold for a generation, which it does not name: 18
 * links are Hopper's or Blackwell's, 12 Ampere's, 6 or less older ones.
 */
static void generation_guess(struct table *t, int most)
{
    struct mf_facts *f = &t->facts;
    double link = 25e9, nic = 25e9;

    if (most > 12) {
        link = t->grace ? 50e9 : 25e9;
        nic = t->grace ? 100e9 : 50e9;
        f->pcie_bytes_per_s = 63e9;
    } else if (most > 6)
        f->pcie_bytes_per_s = 31.5e9;
    else if (most > 0) {
        nic = 12.5e9;
        f->pcie_bytes_per_s = 15.75e9;
    }
    f->link_how = f->nic_how = MF_ASSUMED;
    for (int a = 0; a < t->gpus; a++) {
        bool behind_switch;
        int links = links_of(t, a, &behind_switch);

        if (behind_switch)
            f->fabric[a] = links * link;
        for (int b = 0; !behind_switch && b < t->gpus; b++)
            f->link[a][b] = t->links[a][b] * link;
    }
    f->nic_bytes_per_s = (double)f->nics * nic;
    snprintf(f->link_from, sizeof f->link_from,
        "nvidia-smi topo -m: %d links, taken to carry %g GB/s each", most,
        link * 1e-9);
    snprintf(f->nic_from, sizeof f->nic_from,
        "nvidia-smi topo -m: %lld NICs for %d GPUs, taken to carry %g GB/s "
        "each",
        (long long)f->nics, t->gpus, nic * 1e-9);
}

/* NICs that share a PCIe switch with a GPU carry its traffic; others are for
 * storage. Where none does, all.
 */
static void nics_count(struct table *t)
{
    int64_t near = 0;

    for (int i = 0; i < t->columns; i++)
        near += !t->is_gpu[i] && t->near[i];
    t->facts.nics = near > 0 ? near : t->nics;
}

static int table_finish(struct table *t, const char *path, struct mf_error *err)
{
    int most = 0;

    for (int i = 0; i < t->gpus; i++) {
        bool behind_switch;
        int links = links_of(t, i, &behind_switch);

        if (!t->seen[i])
            return mf_error_set(err, MF_INVALID,
                "%.200s: the row of one of %d GPUs is missing: the table is "
                "cut off",
                path, t->gpus);
        most = links > most ? links : most;
    }
    t->most = most;
    t->facts.gpus = t->gpus;
    t->facts.links_known = true;
    nics_count(t);
    generation_guess(t, most);
    return 0;
}

static int table_read(
    struct table *t, const char *path, char *data, struct mf_error *err)
{
    int number = 0;

    for (char *line = data, *next; line; line = next) {
        char *word[WORDS_MAX], *end = strchr(line, '\n');
        int words, rc = 0;

        next = end ? end + 1 : NULL;
        if (end)
            *end = 0;
        number++;
        escapes_drop(line);
        words = words_cut(line, word);
        if (words == 0)
            continue;
        if (t->columns == 0)
            rc = header_take(t, word, words, err);
        else if (gpu_number(word[0]) >= 0)
            rc = row_take(t, word, words, err);
        if (rc < 0)
            return mf_error_prefix(err, "%.200s:%d", path, number);
    }
    return table_finish(t, path, err);
}

bool mf_smi_is(const char *data)
{
    for (const char *at = data; (at = strstr(at, "GPU0")); at += 4) {
        const char *line = at, *row;
        size_t rest = strcspn(at, "\n");

        while (line > data && line[-1] != '\n')
            line--;
        /* The header begins with white space or an escape code. */
        row = line + strspn(line, " \t\033[0123456789;m");
        if (row == at && (line != at || memchr(at, '\t', rest)) &&
            (rest == 4 || isspace((unsigned char)at[4])))
            return true;
    }
    return false;
}

int mf_smi_cluster(const char *path, char *data, struct mf_cluster *cluster,
    struct mf_error *err)
{
    struct table *t = calloc(1, sizeof *t);
    int rc;

    *cluster = (struct mf_cluster){0};
    if (!t)
        return mf_error_set(err, MF_FAILED, "out of memory");
    mf_facts_init(&t->facts);
    rc = table_read(t, path, data, err);
    if (rc == 0)
        rc = mf_facts_cluster(
            &t->facts, path, "nvidia-smi topo -m", cluster, err);
    if (rc == 0 && t->most == 0)
        rc = mf_cluster_warn(cluster, err,
            "the table has no NVLink in it (topo -mp leaves it out)");
    free(t);
    if (rc < 0)
        mf_cluster_free(cluster);
    return rc;
}

/* The device says what one link and one adapter carry. */
static void device_rates(const struct table *t, struct mf_facts *facts)
{
    const struct mf_device *d = facts->device;
    double guessed = t->grace ? 50e9 : 25e9, scale;

    memcpy(facts->link, t->facts.link, sizeof facts->link);
    memcpy(facts->fabric, t->facts.fabric, sizeof facts->fabric);
    memcpy(facts->numa, t->facts.numa, sizeof facts->numa);
    facts->links_known = true;
    facts->link_how = MF_ASSUMED;
    facts->pcie_bytes_per_s = t->facts.pcie_bytes_per_s;
    facts->nics = t->facts.nics;
    facts->nic_bytes_per_s = t->facts.nic_bytes_per_s;
    facts->nic_how = MF_ASSUMED;
    memcpy(facts->nic_from, t->facts.nic_from, sizeof facts->nic_from);
    memcpy(facts->link_from, t->facts.link_from, sizeof facts->link_from);
    if (!d || !(d->one_link_bytes_per_s > 0))
        return;
    scale = d->one_link_bytes_per_s / guessed;
    for (int a = 0; a < t->gpus; a++) {
        facts->fabric[a] *= scale;
        for (int b = 0; b < t->gpus; b++)
            facts->link[a][b] *= scale;
    }
    facts->link_how = MF_READ;
    snprintf(facts->link_from, sizeof facts->link_from,
        "nvidia-smi topo -m: %d links, each as of %s", t->most, d->model);
}

void mf_smi_links(char *data, struct mf_facts *facts)
{
    struct table *t = calloc(1, sizeof *t);
    struct mf_error ignored;

    if (!t)
        return;
    mf_facts_init(&t->facts);
    if (table_read(t, "nvidia-smi", data, &ignored) == 0 &&
        t->gpus == facts->gpus)
        device_rates(t, facts);
    free(t);
}
