/* SPDX-License-Identifier: BSD-3-Clause
 * Run a layout twice and compare it with both references.
 */
#include "runtime/verify_case.h"

#include "runtime/collective.h"
#include "runtime/verify_compare.h"

void mfr_verify_case_bend(const struct mfr_verify_case *work,
    enum mfr_tensor tensor, int64_t row, float *values)
{
    if (!work->lopsided)
        return;
    if (tensor == MFR_INPUT)
        values[0] = 2;
    if (tensor == MFR_ROUTER)
        values[0] = row == work->shape.experts - 1 ? 2.5F : 0;
}

int mfr_verifier_create(const struct mfr_comms *comms,
    const struct mf_layout *layout, struct mfr_verifier *v,
    struct mf_error *err)
{
    int shard, rc;

    *v = (struct mfr_verifier){
        .comms = comms,
        .layout = *layout,
        .stage = MPI_COMM_NULL,
        .replicas = MPI_COMM_NULL,
        .shared_replicas = MPI_COMM_NULL,
    };
    mf_layout_coords(layout, comms->rank, &v->coords);
    shard = (int)(v->coords.ep * layout->etp + v->coords.etp);
    if (mfr_comm_split(comms->base, (int)v->coords.pp, comms->rank,
            "verify stage", &v->stage, err) ||
        mfr_comm_split(v->stage, shard, comms->rank, "verify replicas",
            &v->replicas, err) ||
        mfr_comm_split(v->stage, (int)v->coords.tp, comms->rank,
            "verify shared", &v->shared_replicas, err))
        return -1;
    rc = mf_layout_parse("tp1", &v->alone_layout, err) ||
                 mf_layout_resolve(&v->alone_layout, 1, ~0u, err) ||
                 mfr_comms_create(
                     MPI_COMM_SELF, &v->alone_layout, &v->alone, err)
             ? -1
             : 0;
    v->connected = rc == 0;
    rc = mfr_agree(comms->base, rc, err);
    if (rc)
        mfr_verifier_free(v);
    return rc;
}

static void free_comm(MPI_Comm *comm)
{
    if (*comm != MPI_COMM_NULL && MPI_Comm_free(comm) != MPI_SUCCESS)
        *comm = MPI_COMM_NULL;
}

void mfr_verifier_free(struct mfr_verifier *v)
{
    if (!v)
        return;
    free_comm(&v->replicas);
    free_comm(&v->shared_replicas);
    free_comm(&v->stage);
    if (v->connected)
        mfr_comms_free(&v->alone);
    v->connected = false;
}

static int check_twice(struct mfr_trial *trial, struct mf_error *err)
{
    struct mfr_folded again;
    int rc = mfr_folded_run(trial->verifier, trial->work, &again, err);

    if (!rc)
        mfr_check_equal(mfr_checks_add(trial->checks, "twice", 0, true),
            mfr_folded_same(&trial->work->shape, &trial->run, &again));
    mfr_folded_free(&again);
    return rc;
}

/* Near ties of all stages, each counted by its first rank. */
static int sum_near_ties(
    const struct mfr_trial *trial, int64_t *near_ties, struct mf_error *err)
{
    int rank;
    int64_t mine;

    if (mfr_mpi(MPI_Comm_rank(trial->verifier->stage, &rank),
            "verify: MPI_Comm_rank", err))
        return -1;
    mine = rank == 0 ? trial->expected.sums->near_ties : 0;
    return mfr_allreduce(&mine, near_ties, 1, MPI_INT64_T, MPI_SUM,
        trial->verifier->comms->base, "verify: MPI_Allreduce", err);
}

int mfr_verify_case_run(const struct mfr_verifier *verifier,
    const struct mfr_verify_case *work, struct mfr_verify_result *result,
    struct mf_error *err)
{
    MPI_Comm base = verifier->comms->base;
    struct mfr_trial trial = {
        .verifier = verifier,
        .work = work,
        .checks = &result->checks,
    };
    int rc;

    *result = (struct mfr_verify_result){0};
    rc = mfr_folded_run(verifier, work, &trial.run, err);
    if (!rc)
        rc = mfr_agree(base,
            mfr_expected_create(verifier, work,
                mfr_folded_scale(&verifier->layout), &trial.expected, err),
            err);
    if (!rc)
        rc = mfr_trial_compare(&trial, err);
    if (!rc && work->pipeline)
        rc = mfr_trial_pipeline(&trial, err);
    if (!rc)
        rc = mfr_trial_step(&trial, err);
    if (!rc)
        rc = check_twice(&trial, err);
    if (!rc)
        rc = sum_near_ties(&trial, &result->near_ties, err);
    if (!rc)
        rc = mfr_checks_settle(&result->checks, verifier->stage, base, err);
    mfr_expected_free(&trial.expected);
    mfr_folded_free(&trial.run);
    return rc;
}
