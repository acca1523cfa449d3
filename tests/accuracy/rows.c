/* SPDX-License-Identifier: BSD-3-Clause
 * Reads the tables of published runs.
 */
#include "tests/accuracy/rows.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "planner/cluster_read.h"
#include "planner/model_read.h"
#include "tests/accuracy/table.h"

static bool has(const char *text, const char *word)
{
    return strstr(text, word) != NULL;
}

/* "NAME (14 layers)" is NAME cut to 14 layers. */
static int64_t layers_of(const char *name)
{
    const char *open = strstr(name, " (");
    int64_t layers;

    if (!open || !isdigit((unsigned char)open[2]))
        return 0;
    layers = strtoll(open + 2, NULL, 10);
    return has(open, "layers)") ? layers : 0;
}

static const char *model_path(const struct rows *rows, const char *name)
{
    size_t length = strcspn(name, "(");

    for (size_t i = 0; i < rows->models.rows; i++) {
        const char *known = table_at(&rows->models, i, "model");

        if (!strcmp(known, name))
            return table_at(&rows->models, i, "config");
    }
    if (!layers_of(name))
        return NULL;
    for (size_t i = 0; i < rows->models.rows; i++) {
        const char *known = table_at(&rows->models, i, "model");

        if (!strncmp(known, name, length - 1) &&
            (known[length - 1] == 0 || layers_of(known)))
            return table_at(&rows->models, i, "config");
    }
    return NULL;
}

static void model_cut(struct mf_model *model, const char *name)
{
    int64_t layers = layers_of(name);
    struct mf_layer_kind last;
    struct mf_layer_kind *kind;

    if (!layers || layers == model->layers)
        return;
    last = model->layer_kind[model->layers - 1];
    kind = calloc((size_t)layers, sizeof *kind);
    if (!kind)
        table_fail("out of memory");
    for (int64_t i = 0; i < layers; i++)
        kind[i] = i < model->layers ? model->layer_kind[i] : last;
    free(model->layer_kind);
    model->layer_kind = kind;
    model->layers = layers;
    mf_model_count_params(model, NULL);
}

static struct mf_model *rows_model(struct rows *rows, const char *name)
{
    const char *path = model_path(rows, name);
    struct mf_error err = {0};
    struct model_entry *entry;
    char file[1024];

    for (int i = 0; i < rows->models_read; i++)
        if (!strcmp(rows->model[i].name, name))
            return &rows->model[i].model;
    if (!path || rows->models_read == 64)
        return NULL;
    entry = &rows->model[rows->models_read];
    snprintf(file, sizeof file, "%s/%s", rows->folder, path);
    if (mf_model_read(file, &entry->model, &err))
        table_fail("%s", err.text);
    snprintf(entry->name, sizeof entry->name, "%s", name);
    model_cut(&entry->model, name);
    if (has(name, "w/o MTP"))
        entry->model.mtp_layers = 0;
    rows->models_read++;
    return &entry->model;
}

static const char *preset_of(const char *gpu)
{
    static const char *const table[][2] = {{"GB200", "gb200-nvl72"},
        {"GB300", "gb300-nvl72"}, {"B200", "dgx-b200"}, {"B300", "dgx-b300"},
        {"H100", "dgx-h100"}, {"MI300X", "mi300x"}, {"MI355X", "mi355x"},
        {"A100", "dgx-a100"}};

    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strncmp(gpu, table[i][0], strlen(table[i][0])))
            return table[i][1];
    return NULL;
}

static enum mf_precision precision_of(const char *text)
{
    if (!strncasecmp(text, "mxfp8", 5) || !strcasecmp(text, "fp8-mx") ||
        !strcasecmp(text, "fp8_mx"))
        return MF_MXFP8;
    return strncasecmp(text, "fp8", 3) ? MF_BF16 : MF_FP8;
}

static enum mf_dispatcher dispatcher_of(const char *text)
{
    if (!strncasecmp(text, "deepep", 6))
        return MF_DEEPEP;
    if (!strncasecmp(text, "hybridep", 8))
        return MF_HYBRIDEP;
    if (!strncasecmp(text, "alltoall", 8))
        return MF_ALLTOALL;
    if (!strncasecmp(text, "allgather", 9))
        return MF_ALLGATHER;
    return MF_DISPATCHER_AUTO;
}

static void fill_settings(
    const struct table *t, size_t i, struct row *row, struct mf_settings *s)
{
    const char *again = table_at(t, i, "recompute"), *n = row->notes;
    double mbs = table_number(t, i, "mbs"), vpp = table_number(t, i, "vpp");

    mf_settings_init(s);
    s->seq = (int64_t)table_number(t, i, "seq");
    s->global_batch = (int64_t)table_number(t, i, "gbs");
    s->micro_batch = isnan(mbs) ? 0 : (int64_t)mbs;
    s->vpp = isnan(vpp) ? 0 : (int64_t)vpp;
    s->precision = precision_of(table_at(t, i, "precision"));
    s->dispatcher = dispatcher_of(table_at(t, i, "dispatcher"));
    if (mf_recompute_parse(*again ? again : "auto", s))
        table_fail("line %zu: recompute %s", i, again);
    if (has(n, "balance=forced") || has(n, "balance=token-drop"))
        s->imbalance = 0;
    if (has(n, "balance=token-drop"))
        s->capacity_factor = 1;
    if (has(n, "FSDP"))
        s->shard = MF_SHARD_FULL;
    s->ep_overlap = (has(n, "EP overlap") && !has(n, "overlap off") &&
                        !has(n, "no EP overlap")) ||
                    has(n, "A2A overlap");
    if (has(n, "full CUDA graph") || has(n, "full-iteration CUDA graph"))
        s->graphs = MF_GRAPHS_FULL;
    else if (has(n, "partial CUDA graph"))
        s->graphs = MF_GRAPHS_PARTIAL;
    else if (has(n, "CUDA graphs off"))
        s->graphs = MF_GRAPHS_NONE;
}

static int64_t size_of(const struct table *t, size_t i, const char *head)
{
    double value = table_number(t, i, head);

    return isnan(value) ? 1 : (int64_t)value;
}

/* ETP that a row leaves blank is TP where the software had no folding. */
static int64_t blank_etp(const struct row *row, int64_t tp)
{
    if (has(row->notes, "method=MCore") || has(row->notes, "TP+EP+DP") ||
        has(row->notes, "older NeMo: ETP=TP"))
        return tp;
    return 1;
}

static int fill_layout(const struct table *t, size_t i, struct row *row)
{
    struct mf_layout *l = &row->asked.layout;
    double world = table_number(t, i, "n_gpus");
    double etp = table_number(t, i, "etp");
    struct mf_error err = {0};
    char text[256];

    if (isnan(world))
        return -1;
    snprintf(text, sizeof text, "tp%lld.cp%lld.pp%lld/etp%lld.ep%lld",
        (long long)size_of(t, i, "tp"), (long long)size_of(t, i, "cp"),
        (long long)size_of(t, i, "pp"),
        (long long)(isnan(etp) ? blank_etp(row, size_of(t, i, "tp"))
                               : (int64_t)etp),
        (long long)size_of(t, i, "ep"));
    if (mf_layout_parse(text, l, &err))
        return -1;
    if (isnan(etp) && blank_etp(row, 2) == 2)
        l->coupled = true;
    if (mf_layout_resolve(l, (int64_t)world, ~0u, &err)) {
        l->coupled = false;
        return mf_layout_resolve(l, (int64_t)world, ~0u, &err);
    }
    return 0;
}

/* What a row measured, as seconds of a step. */
static double measured(const struct table *t, size_t i, const struct row *row)
{
    const struct mf_settings *s = &row->asked.settings;
    double step = table_number(t, i, "step_s"), world, tokens;
    double rate = table_number(t, i, "tokens_per_s_per_gpu"), flops;
    double tflops = table_number(t, i, "tflops_per_gpu");
    double mfu = table_number(t, i, "mfu_pct");

    world = (double)mf_layout_world(&row->asked.layout);
    tokens = (double)s->global_batch * (double)s->seq / world;
    if (step > 0)
        return step;
    if (rate > 0)
        return tokens / rate;
    flops = mf_cost_token_flops(row->model, s->seq);
    if (tflops > 0)
        return tokens * flops / (tflops * 1e12);
    if (mfu > 0)
        return tokens * flops / (mfu * 0.01 * row->cluster.gpu.bf16_flops);
    return NAN;
}

static const char *row_fill(
    struct rows *rows, const struct table *t, size_t i, struct row *row)
{
    static const char *const stated[] = {
        "tp", "cp", "ep", "etp", "pp", "mbs", "gbs", "recompute"};
    const char *preset = preset_of(row->gpu);
    struct mf_cluster_ask ask = {.source = &preset, .sources = 1};
    struct mf_error err = {0};

    row->model = rows_model(rows, row->model_name);
    if (!row->model)
        return "no file of the model";
    if (!preset)
        return "no preset of the GPU";
    if (has(row->notes, "item=peft") || has(row->notes, "item=sft"))
        return "fine-tuning";
    if (has(row->notes, "status=invalid") || has(row->notes, "stall finding"))
        return "the source calls it invalid";
    if (has(row->notes, "known regression"))
        return "the source calls it a regression";
    row->complete = true;
    for (size_t k = 0; k < sizeof stated / sizeof *stated; k++)
        row->complete &= *table_at(t, i, stated[k]) != 0;
    fill_settings(t, i, row, &row->asked.settings);
    if (row->asked.settings.global_batch < 1 || row->asked.settings.seq < 1)
        return "no batch or sequence";
    if (!*table_at(t, i, "tp") && !*table_at(t, i, "ep"))
        return "no layout";
    if (fill_layout(t, i, row))
        return "no world, or a layout that breaks a rule";
    ask.world = mf_layout_world(&row->asked.layout);
    if (mf_cluster_read(&ask, &row->cluster, &err))
        table_fail("%s", err.text);
    row->run.source = mf_source_find(row->source);
    row->efa = has(row->gpu, "EFA");
    row->step_s = measured(t, i, row);
    row->status = has(row->notes, "status=oom") ? ROW_OOM : ROW_OK;
    if (mf_cost_check(row->model, &row->asked.layout, &row->asked.settings,
            MF_SCOPE_STEP, &err))
        return "a layout that breaks a rule";
    if (row->status == ROW_OK && !(row->step_s > 0) && strcmp(row->notes, "") &&
        !has(row->notes, "feasible"))
        return "nothing measured";
    return NULL;
}

static bool settings_equal(
    const struct mf_settings *a, const struct mf_settings *b)
{
    return a->seq == b->seq && a->global_batch == b->global_batch &&
           a->micro_batch == b->micro_batch && a->vpp == b->vpp &&
           a->precision == b->precision && a->recompute == b->recompute &&
           a->modules == b->modules && a->dispatcher == b->dispatcher &&
           a->imbalance == b->imbalance &&
           isnan(a->capacity_factor) == isnan(b->capacity_factor) &&
           a->shard == b->shard && a->ep_overlap == b->ep_overlap &&
           a->graphs == b->graphs;
}

static bool layout_equal(const struct mf_layout *a, const struct mf_layout *b)
{
    return a->tp == b->tp && a->cp == b->cp && a->dp == b->dp &&
           a->pp == b->pp && a->etp == b->etp && a->ep == b->ep &&
           a->coupled == b->coupled;
}

static bool shape_equal(const struct mf_model *a, const struct mf_model *b)
{
    return a->hidden == b->hidden && a->moe_ffn == b->moe_ffn &&
           a->experts == b->experts && a->topk == b->topk;
}

static void rows_number(struct rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        struct row *a = &rows->row[i];

        a->family = a->device = a->group = (int)i;
        if (a->status == ROW_LEFT_OUT)
            continue;
        for (size_t j = i; j-- > 0;) {
            struct row *b = &rows->row[j];

            if (b->status == ROW_LEFT_OUT)
                continue;
            if (shape_equal(a->model, b->model))
                a->family = b->family;
            if (!strcmp(a->cluster.gpu.model, b->cluster.gpu.model))
                a->device = b->device;
            if (!strcmp(a->source, b->source) && a->model == b->model &&
                !strcmp(a->gpu, b->gpu) &&
                layout_equal(&a->asked.layout, &b->asked.layout) &&
                settings_equal(&a->asked.settings, &b->asked.settings))
                a->group = b->group;
        }
    }
}

void rows_read(struct rows *rows, const char *folder, const char *file)
{
    *rows = (struct rows){.folder = folder};
    table_read(&rows->runs, folder, file);
    table_read(&rows->models, folder, "models.csv");
    rows->count = rows->runs.rows;
    rows->row = calloc(rows->count, sizeof *rows->row);
    if (!rows->row)
        table_fail("out of memory");
    for (size_t i = 0; i < rows->count; i++) {
        struct row *row = &rows->row[i];

        row->line = i + 2;
        row->source = table_at(&rows->runs, i, "source");
        row->model_name = table_at(&rows->runs, i, "model");
        row->gpu = table_at(&rows->runs, i, "gpu");
        row->notes = table_at(&rows->runs, i, "notes");
        row->why = row_fill(rows, &rows->runs, i, row);
        if (row->why)
            row->status = ROW_LEFT_OUT;
    }
    rows_number(rows);
}

void rows_free(struct rows *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        mf_cluster_free(&rows->row[i].cluster);
    for (int i = 0; i < rows->models_read; i++)
        mf_model_free(&rows->model[i].model);
    free(rows->row);
    table_free(&rows->runs);
    table_free(&rows->models);
}
