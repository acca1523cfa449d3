/* SPDX-License-Identifier: BSD-3-Clause
 * The settings that a command line gives.
 */
#include "config.h"

#include <string.h>

#include "planner/cli/inputs.h"
#include "planner/layout/number.h"
#include "planner/model_read.h"

/* A setting that is one of a list of names. */
static int setting_name(const struct mf_cli *cli, const char *option,
    int (*find)(const char *), int *value, struct mf_error *err)
{
    const char *text = mf_cli_value(cli, option);

    if (!text)
        return 0;
    *value = find(text);
    if (*value < 0)
        return mf_error_set(err, MF_INVALID,
            "--%s '%.64s' is not known; see --help", option, text);
    return 0;
}

static int setting_names(
    const struct mf_cli *cli, struct mf_settings *s, struct mf_error *err)
{
    int precision = (int)s->precision, graphs = (int)s->graphs;
    int dispatcher = (int)s->dispatcher, shard = (int)s->shard;
    const char *again = mf_cli_value(cli, "recompute");

    if (again && mf_recompute_parse(again, s))
        return mf_error_set(err, MF_INVALID,
            "--recompute '%.64s' is not known; give none, selective, full, "
            "auto, or modules such as moe_act,layernorm",
            again);
    if (setting_name(cli, "precision", mf_precision_find, &precision, err) ||
        setting_name(cli, "cuda-graphs", mf_graphs_find, &graphs, err) ||
        setting_name(cli, "dispatcher", mf_dispatcher_find, &dispatcher, err) ||
        setting_name(cli, "shard", mf_shard_find, &shard, err))
        return -1;
    s->precision = (enum mf_precision)precision;
    s->graphs = (enum mf_graphs)graphs;
    s->ep_overlap = s->ep_overlap || mf_cli_has(cli, "ep-overlap");
    s->dispatcher = (enum mf_dispatcher)dispatcher;
    s->shard = (enum mf_shard)shard;
    return 0;
}

/* A whole number or "auto", which is 0. */
static int setting_auto(const struct mf_cli *cli, const char *option,
    int64_t most, int64_t *value, struct mf_error *err)
{
    const char *text = mf_cli_value(cli, option);

    if (text && !strcmp(text, "auto")) {
        *value = 0;
        return 0;
    }
    return mf_cli_integer(cli, option, 1, most, value, err);
}

/* "F,L", "even" (0 and 0) or "auto" (-1 and -1). */
static int setting_split(
    const struct mf_cli *cli, struct mf_settings *s, struct mf_error *err)
{
    const char *text = mf_cli_value(cli, "split"), *comma;
    char first[32];

    if (!text)
        return 0;
    if (!strcmp(text, "even") || !strcmp(text, "auto")) {
        s->first_layers = s->last_layers = *text == 'a' ? -1 : 0;
        return 0;
    }
    comma = strchr(text, ',');
    if (!comma || (size_t)(comma - text) >= sizeof first)
        return mf_error_set(err, MF_INVALID,
            "--split '%.64s' is not like 6,5 (layers of the first and last "
            "stage), even or auto",
            text);
    memcpy(first, text, (size_t)(comma - text));
    first[comma - text] = '\0';
    if (mf_number_parse(first, "--split", 1, 1 << 20, &s->first_layers, err) ||
        mf_number_parse(comma + 1, "--split", 1, 1 << 20, &s->last_layers, err))
        return -1;
    return 0;
}

/* Sequence and batch that the arguments of a Megatron model give stand for
 * options that are not given. A model that can't be read is refused elsewhere.
 */
static void settings_of_model(const struct mf_cli *cli, struct mf_settings *s)
{
    const char *file = mf_cli_value(cli, "model");
    struct mf_arguments a;
    struct mf_model model;

    if (!file || mf_model_read_arguments(file, &model, &a, NULL))
        return;
    mf_model_free(&model);
    if (a.seq)
        s->seq = a.seq;
    if (a.global_batch)
        s->global_batch = a.global_batch;
    if (a.micro_batch && s->micro_batch)
        s->micro_batch = a.micro_batch;
}

int mf_inputs_settings(
    const struct mf_cli *cli, struct mf_settings *s, struct mf_error *err)
{
    settings_of_model(cli, s);
    if (mf_cli_integer(cli, "seq", 1, (int64_t)1 << 31, &s->seq, err) ||
        mf_cli_integer(
            cli, "global-batch", 1, (int64_t)1 << 31, &s->global_batch, err) ||
        setting_auto(cli, "micro-batch", 1 << 20, &s->micro_batch, err) ||
        setting_auto(cli, "vpp", 1 << 20, &s->vpp, err) ||
        setting_split(cli, s, err) ||
        mf_cli_decimal(cli, "imbalance", 0, 0.999, &s->imbalance, err) ||
        mf_cli_decimal(
            cli, "capacity-factor", 1e-3, 1e6, &s->capacity_factor, err))
        return -1;
    return setting_names(cli, s, err);
}
