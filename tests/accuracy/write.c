/* SPDX-License-Identifier: BSD-3-Clause
 * Writes what was fitted as planner/published_table.c.
 */
#include <math.h>
#include <stdio.h>

#include "planner/cluster_read.h"
#include "tests/accuracy/fit.h"

static void write_head(FILE *file)
{
    fputs(
        "/* SPDX-License-Identifier: BSD-3-Clause\n"
        " * Written by tests/accuracy (make accuracy-table) from the published"
        " runs in\n"
        " * tests/data/measured, whose README names the sources.\n"
        " */\n"
        "/* clang-format off */\n"
        "#include \"planner/published.h\"\n\n",
        file);
}

static void write_coefficients(FILE *file, const double *x)
{
    static const char *const preset[] = {
        "dgx-h100", "dgx-b200", "dgx-b300", "gb200-nvl72"};

    fputs("const double mf_published_coefficients[4][MF_COEFS] = {\n", file);
    for (int kind = 0; kind < 4; kind++) {
        struct mf_cluster_ask ask = {
            .source = &preset[kind], .sources = 1, .world = 8};
        struct mf_error err = {0};
        struct mf_coefficients set;
        struct mf_cluster cluster;

        if (mf_cluster_read(&ask, &cluster, &err))
            table_fail("%s", err.text);
        fit_coefficients(&cluster, 1u << kind, -1, x, &set);
        fputs("    {\n", file);
        for (int i = 0; i < MF_COEFS; i++)
            fprintf(file, "        %.6g, /* %s */\n", set.value[i],
                mf_coefficient_name(i));
        fputs("    },\n", file);
        mf_cluster_free(&cluster);
    }
    fputs("};\n\n", file);
}

static void write_sources(FILE *file, const double *x)
{
    double hopper = 1, tier = 1;

    for (int i = 0; i < fit_parameter_count; i++) {
        if (fit_parameters[i].kinds == FIT_EFA_HOPPER)
            hopper = exp(x[i]);
        if (fit_parameters[i].kinds == FIT_EFA)
            tier = exp(x[i]);
    }
    fprintf(
        file, "const double mf_published_source[%d][2] = {\n", mf_source_count);
    for (int i = 0; i < mf_source_count; i++) {
        double own = exp(x[fit_parameter_count + i]);

        fprintf(file, "    {%.6g, %.6g}, /* %s */\n", own,
            mf_sources[i].efa ? hopper : own, mf_sources[i].name);
    }
    fprintf(file, "};\nconst double mf_published_efa_tier = %.6g;\n\n", tier);
}

static void write_runs(FILE *file, const struct fitted *fit)
{
    const struct mf_published_spreads *s = &fit_spreads;

    fprintf(file,
        "const struct mf_published_spreads mf_published_spreads = {\n"
        "    %.6g, %.6g, %.6g, %.6g, %.6g, %.6g, %.6g,\n};\n\n",
        s->source, s->source_shape, s->shape_device, s->recipe, s->noise,
        s->months, s->octaves);
    fprintf(file, "const int mf_published_run_count = %zu;\n", fit->n);
    fprintf(file, "const struct mf_published_run mf_published_runs[%zu] = {\n",
        fit->n);
    for (size_t i = 0; i < fit->n; i++) {
        const struct mf_published_run *r = &fit->row[i]->run;

        fprintf(file, "    {%d, %d, %d, %d, %d, \"%s\",\n", r->source,
            r->hidden, r->moe_ffn, r->experts, r->topk, r->device);
        fprintf(file, "     %d, %d, %d, %d, %d, %d, %d,\n", r->tp, r->cp, r->pp,
            r->ep, r->etp, r->world, r->micro_batch);
        fprintf(file, "     %d, %d, %d, %d, %d, %d, %d, %.6g, %.6g},\n",
            r->precision, r->shard, r->dispatcher, r->recompute, r->graphs,
            r->overlap, r->capacity, fit->noise[i], fit->weight[i]);
    }
    fputs("};\n", file);
}

void write_table(const char *name, const struct fitted *fit)
{
    FILE *file = fopen(name, "w");

    if (!file)
        table_fail("%s cannot be written", name);
    write_head(file);
    write_coefficients(file, fit->x);
    write_sources(file, fit->x);
    write_runs(file, fit);
    if (fclose(file))
        table_fail("%s cannot be written", name);
}
