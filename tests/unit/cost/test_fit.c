/* SPDX-License-Identifier: BSD-3-Clause
 * A fit to made-up runs: phases that are slower than the prior by factors the
 * fit does not know, with some noise.
 */
#include "config.h"

#include <unistd.h>

#include "planner/fit.h"
#include "tests/unit/cost/bed.h"

#define HIDDEN 256
#define FFN 512
#define EXPERTS 8
#define TOPK 2
#define SEQ 512

struct past_bed {
    char folder[128], path[160], spool[180];
    struct mf_cluster cluster;
    struct mf_coefficients prior;
    uint64_t seed;
};

static int past_up(void **state)
{
    const char *place = getenv("TMPDIR");
    struct past_bed *bed = calloc(1, sizeof *bed);

    if (!bed)
        return -1;
    snprintf(bed->folder, sizeof bed->folder, "%.100s/moefold-fit.XXXXXX",
        place ? place : "/tmp");
    if (!mkdtemp(bed->folder))
        return -1;
    snprintf(bed->path, sizeof bed->path, "%s/h.db", bed->folder);
    snprintf(bed->spool, sizeof bed->spool, "%s.spool", bed->path);
    bed_cpu(&bed->cluster, 8, 40e9, 8e9, 2e9);
    bed->cluster.cores = 2;
    mf_coefficients_prior(&bed->cluster, &bed->prior);
    bed->seed = 77;
    *state = bed;
    return 0;
}

static int past_down(void **state)
{
    static const char *const tails[] = {"", "-wal", "-shm", "-journal"};
    struct past_bed *bed = *state;

    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        char path[200];

        snprintf(path, sizeof path, "%s%s", bed->path, tails[i]);
        (void)unlink(path);
    }
    (void)rmdir(bed->spool);
    (void)rmdir(bed->folder);
    mf_cluster_free(&bed->cluster);
    free(bed);
    return 0;
}

/* What this imaginary machine takes for a phase that the prior prices at
 * SECONDS, by another set of rules than the model's.
 */
static double truth(int phase, double seconds, int64_t ep)
{
    switch (phase) {
    case MF_PHASE_EXPERTS:
        return 1.7 * seconds;
    case MF_PHASE_ROUTE:
        return 2.5 * seconds;
    case MF_PHASE_PERMUTE:
    case MF_PHASE_UNPERMUTE:
        return 3 * seconds;
    case MF_PHASE_DISPATCH:
    case MF_PHASE_COMBINE:
        return 5 * seconds + 2e-4 * (double)ep;
    default:
        return 4 * seconds;
    }
}

static void price(const struct past_bed *bed, const struct mf_coefficients *set,
    const char *layout, struct mf_plan_entry *entry)
{
    struct mf_error err = {0};
    struct mf_model model;

    bed_small(&model, 1, HIDDEN, FFN, EXPERTS, TOPK);
    *entry = (struct mf_plan_entry){.settings = bed_settings(0)};
    entry->settings.seq = SEQ;
    entry->layout = bed_layout(layout, 8, false);
    if (mf_cost_predict(&model, &bed->cluster, MF_SCOPE_MOE, set, entry, &err))
        fail_msg("%s", err.text);
    mf_model_free(&model);
}

/* Fill SAMPLE for each phase of LAYOUT; returns how many, and the layer. */
static int measure(struct past_bed *bed, const char *layout, bool exact,
    struct mfdb_sample *sample, double *layer_s)
{
    struct mf_plan_entry entry;
    int n = 0;

    price(bed, &bed->prior, layout, &entry);
    *layer_s = 0;
    for (int i = 0; i < MF_PHASES; i++)
        for (int d = 0; d < MF_DIRECTIONS; d++) {
            double s = entry.cost.phase_s[i][d];
            double noise =
                1 + 0.03 * ((double)(bed_random(&bed->seed) % 201) / 100 - 1);

            if (!isfinite(s))
                continue;
            if (!exact)
                s = truth(i, s, entry.layout.ep) * noise;
            sample[n] = (struct mfdb_sample){.iteration = 0,
                .min_s = s,
                .median_s = s,
                .max_s = s,
                .slowest_rank = 0,
                .bytes = NAN,
                .flops = NAN,
                .predicted_s = entry.cost.phase_s[i][d]};
            snprintf(sample[n].phase, sizeof sample[n].phase, "%s",
                mf_phase_name((enum mf_phase)i));
            snprintf(sample[n].direction, sizeof sample[n].direction, "%s",
                mf_direction_name((enum mf_direction)d));
            if (i < MF_PHASE_STAGE_SEND)
                *layer_s += s;
            n++;
        }
    mf_cost_free(&entry.cost);
    return n;
}

#define TEXT(member, value) snprintf(run.member, sizeof run.member, "%s", value)

/* A finished run of LAYOUT, TIMES slower than it should be. */
static void remember(
    struct past_bed *bed, const char *layout, bool exact, double times)
{
    struct mfdb_sample sample[2 * MF_PHASES];
    char text[MFDB_ERROR_TEXT], canonical[MF_LAYOUT_TEXT];
    struct mf_layout resolved = bed_layout(layout, 8, false);
    struct mfdb_run run = {.started_at = 1000,
        .ended_at = 1001,
        .ranks = 8,
        .nodes = 1,
        .hidden = HIDDEN,
        .ffn = FFN,
        .experts = EXPERTS,
        .topk = TOPK,
        .seq = SEQ,
        .micro_batch = 1,
        .vocab = -1,
        .gated = true,
        .imbalance = NAN,
        .iterations = 1,
        .tokens_per_s = NAN,
        .predicted_s = NAN};
    mfdb_spool *spool;
    int n;

    n = measure(bed, layout, exact, sample, &run.layer_s);
    run.layer_s *= times;
    assert_int_equal(mfdb_uuid(run.run_id), 0);
    mf_layout_format(&resolved, canonical, sizeof canonical);
    TEXT(status, "done");
    TEXT(model, "small");
    TEXT(cluster, bed->cluster.name);
    TEXT(layout, canonical);
    TEXT(rank_order, "tp-cp-ep-dp-pp");
    TEXT(backend, "cpu");
    TEXT(dispatcher, "alltoall");
    spool = mfdb_spool_create(bed->spool, &run, text);
    if (!spool)
        fail_msg("%s", text);
    assert_int_equal(mfdb_spool_append(spool, sample, (size_t)n, text), 0);
    assert_int_equal(mfdb_spool_finish(spool, &run, text), 0);
    mfdb_spool_close(spool);
}

static int fit(struct past_bed *bed, struct mf_fit *out, struct mf_error *err)
{
    char text[MFDB_ERROR_TEXT];
    mfdb *db = mfdb_open(bed->path, MFDB_UPDATE, text);
    int rc;

    if (!db)
        fail_msg("%s", text);
    rc = mf_fit_run(db, &bed->cluster, &bed->prior, out, err);
    mfdb_close(db);
    return rc;
}

/* |predicted/true - 1| of LAYOUT's layer under SET. */
static double unseen_error(
    struct past_bed *bed, const struct mf_coefficients *set, const char *layout)
{
    struct mfdb_sample sample[2 * MF_PHASES];
    struct mf_plan_entry entry;
    double layer, predicted;

    measure(bed, layout, false, sample, &layer);
    price(bed, set, layout, &entry);
    predicted = entry.cost.layer_forward_s + entry.cost.layer_backward_s;
    mf_cost_free(&entry.cost);
    return fabs(predicted / layer - 1);
}

static void four_runs(struct past_bed *bed)
{
    struct mf_error err = {0};
    struct mf_fit out;

    remember(bed, "tp1/ep8", false, 1);
    remember(bed, "tp2/ep4", false, 1);
    remember(bed, "tp4/etp2.ep4", false, 1);
    remember(bed, "tp2/etp4.ep2", false, 1);
    if (fit(bed, &out, &err))
        fail_msg("%s", err.text);
    assert_int_equal(out.runs, 4);
    assert_int_equal(out.layouts, 4);
    assert_true(out.samples > 0);
    assert_true(out.improved);
    assert_true(out.error_before > 0.4);
    assert_true(out.error_after < 0.15);
    assert_true(unseen_error(bed, &bed->prior, "tp8/etp2.ep2") > 0.4);
    assert_true(unseen_error(bed, &out.set, "tp8/etp2.ep2") < 0.15);
    assert_true(unseen_error(bed, &out.set, "tp1/ep2") < 0.15);
}

static void four_runs_help_a_fifth(void **state)
{
    four_runs(*state);
}

/* Here phases count too. */
static void four_runs_with_cores_enough(void **state)
{
    struct past_bed *bed = *state;

    bed->cluster.cores = 8;
    four_runs(bed);
}

static void one_wild_run(void **state)
{
    struct past_bed *bed = *state;
    struct mf_error err = {0};
    struct mf_fit out;

    remember(bed, "tp1/ep8", false, 1);
    remember(bed, "tp2/ep4", false, 1);
    remember(bed, "tp4/etp2.ep4", false, 1);
    remember(bed, "tp2/etp4.ep2", false, 1);
    remember(bed, "tp1/ep4", false, 6);
    remember(bed, "tp8/etp8", false, 1);
    assert_int_equal(fit(bed, &out, &err), 0);
    assert_true(out.improved);
    assert_true(unseen_error(bed, &out.set, "tp8/etp2.ep2") < 0.045);
}

/* Runs as predicted teach nothing: the set stays as it was. */
static void nothing_to_learn(void **state)
{
    struct past_bed *bed = *state;
    struct mf_error err = {0};
    struct mf_fit out;

    remember(bed, "tp1/ep8", true, 1);
    remember(bed, "tp2/ep4", true, 1);
    remember(bed, "tp2/etp4.ep2", true, 1);
    assert_int_equal(fit(bed, &out, &err), 0);
    assert_false(out.improved);
    for (int i = 0; i < MF_COEFS; i++)
        assert_true(out.set.value[i] == bed->prior.value[i]);
    assert_string_equal(out.set.name, "prior");
}

static void too_few(void **state)
{
    struct past_bed *bed = *state;
    struct mf_error err = {0};
    struct mf_fit out;

    remember(bed, "tp1/ep8", false, 1);
    remember(bed, "tp1/ep8", false, 1);
    assert_int_equal(fit(bed, &out, &err), -1);
    assert_int_equal(err.status, MF_FAILED);
    assert_non_null(strstr(err.text, "runs 2, different layouts 1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            four_runs_help_a_fifth, past_up, past_down),
        cmocka_unit_test_setup_teardown(
            four_runs_with_cores_enough, past_up, past_down),
        cmocka_unit_test_setup_teardown(one_wild_run, past_up, past_down),
        cmocka_unit_test_setup_teardown(nothing_to_learn, past_up, past_down),
        cmocka_unit_test_setup_teardown(too_few, past_up, past_down),
    };

    return cmocka_run_group_tests_name("fit", tests, NULL, NULL);
}
