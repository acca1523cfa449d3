/* SPDX-License-Identifier: BSD-3-Clause
 * The forward pass of a whole layer against the same five steps as one writes
 * them at first (copy rows by expert, MPI_Alltoallv, products expert by expert,
 * MPI_Alltoallv, add), and where the layer's time goes. Run on 2 ranks by make
 * bench; both give the same output, which is checked.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "runtime/clock.h"
#include "runtime/layer.h"
#include "runtime/stats.h"

enum {
    REPEATS = 9,
    HIDDEN = 1024,
    FFN = 512,
    EXPERTS = 8,
    TOPK = 2,
    RANKS = 2
};

struct bench {
    struct mfr_shape shape;
    struct mfr_comms comms;
    mfr_layer *layer;
    int64_t tokens;
    float *x, *y, *again;
    double phase_s[MF_PHASES];
};

/* Rows of one rank are for one peer's experts in turn; counts are exchanged
 * each time, buffers are new each time, and each expert's rows are put
 * together from both sources.
 */
struct naive {
    int64_t *count, *theirs; /* [EXPERTS], [RANKS][EXPERTS] */
    int send[RANKS], send_at[RANKS], take[RANKS], take_at[RANKS];
    float *out, *in, *sorted, *made, *back, *gate, *up, *act;
    int64_t *token; /* [tokens * TOPK] */
    float *weight;
};

static float *room(int64_t rows, int64_t columns)
{
    return malloc(((size_t)rows * (size_t)columns + 1) * sizeof(float));
}

static void naive_pack(struct bench *b, struct naive *n)
{
    const struct mfr_routes r = mfr_layer_routes(b->layer);
    int64_t at = 0;

    memset(n->send, 0, sizeof n->send);
    for (int64_t e = 0; e < EXPERTS; e++) {
        n->count[e] = 0;
        for (int64_t i = 0; i < r.tokens * TOPK; i++) {
            if (r.ids[i] != e)
                continue;
            memcpy(n->out + at * HIDDEN, b->x + i / TOPK * HIDDEN,
                HIDDEN * sizeof(float));
            n->token[at] = i / TOPK;
            n->weight[at++] = r.weights[i];
            n->count[e]++;
        }
        n->send[e / (EXPERTS / RANKS)] += (int)n->count[e];
    }
}

static void naive_experts(struct bench *b, struct naive *n)
{
    const struct mfr_tensors w = mfr_layer_weights(b->layer);
    const int64_t local = EXPERTS / RANKS, first = b->comms.rank * local;

    for (int64_t l = 0; l < local; l++) {
        int64_t rows = 0, at[RANKS], got[RANKS];

        for (int s = 0; s < RANKS; s++) {
            at[s] = n->take_at[s];
            for (int64_t e = 0; e < l; e++)
                at[s] += n->theirs[s * EXPERTS + first + e];
            got[s] = n->theirs[s * EXPERTS + first + l];
            memcpy(n->sorted + rows * HIDDEN, n->in + at[s] * HIDDEN,
                (size_t)got[s] * HIDDEN * sizeof(float));
            rows += got[s];
        }
        mfk_gemm_nt(MFK_BLAS, rows, FFN, HIDDEN, n->sorted,
            w.gate + l * FFN * HIDDEN, false, n->gate);
        mfk_gemm_nt(MFK_BLAS, rows, FFN, HIDDEN, n->sorted,
            w.up + l * FFN * HIDDEN, false, n->up);
        for (int64_t i = 0; i < rows * FFN; i++)
            n->act[i] = n->gate[i] / (1 + expf(-n->gate[i])) * n->up[i];
        mfk_gemm_nt(MFK_BLAS, rows, HIDDEN, FFN, n->act,
            w.down + l * FFN * HIDDEN, false, n->sorted);
        rows = 0;
        for (int s = 0; s < RANKS; s++) {
            memcpy(n->made + at[s] * HIDDEN, n->sorted + rows * HIDDEN,
                (size_t)got[s] * HIDDEN * sizeof(float));
            rows += got[s];
        }
    }
}

static void naive_add(struct bench *b, const struct naive *n)
{
    memset(b->again, 0, (size_t)(b->tokens * HIDDEN) * sizeof(float));
    for (int64_t i = 0; i < b->tokens * TOPK; i++)
        for (int64_t h = 0; h < HIDDEN; h++)
            b->again[n->token[i] * HIDDEN + h] +=
                n->weight[i] * n->back[i * HIDDEN + h];
}

static int naive_move(struct bench *b, struct naive *n, struct mf_error *err)
{
    const MPI_Comm ep = b->comms.comm[MF_GROUP_EP];
    const int64_t local = EXPERTS / RANKS;
    int64_t rows = 0;
    MPI_Datatype row;

    if (mfr_mpi(MPI_Allgather(n->count, EXPERTS, MPI_INT64_T, n->theirs,
                    EXPERTS, MPI_INT64_T, ep),
            "MPI_Allgather", err) ||
        mfr_mpi(MPI_Type_contiguous(HIDDEN, MPI_FLOAT, &row), "type", err) ||
        mfr_mpi(MPI_Type_commit(&row), "type", err))
        return -1;
    for (int s = 0; s < RANKS; s++) {
        n->send_at[s] = s ? n->send_at[s - 1] + n->send[s - 1] : 0;
        n->take[s] = 0;
        for (int64_t l = 0; l < local; l++)
            n->take[s] +=
                (int)n->theirs[s * EXPERTS + b->comms.rank * local + l];
        n->take_at[s] = (int)rows;
        rows += n->take[s];
    }
    n->in = room(rows, HIDDEN);
    n->sorted = room(rows, HIDDEN);
    n->made = room(rows, HIDDEN);
    n->gate = room(rows, FFN);
    n->up = room(rows, FFN);
    n->act = room(rows, FFN);
    n->back = room(b->tokens * TOPK, HIDDEN);
    if (!n->in || !n->sorted || !n->made || !n->gate || !n->up || !n->act ||
        !n->back)
        return mf_error_set(err, MF_FAILED, "out of memory");
    if (mfr_mpi(MPI_Alltoallv(n->out, n->send, n->send_at, row, n->in, n->take,
                    n->take_at, row, ep),
            "MPI_Alltoallv", err))
        return -1;
    naive_experts(b, n);
    if (mfr_mpi(MPI_Alltoallv(n->made, n->take, n->take_at, row, n->back,
                    n->send, n->send_at, row, ep),
            "MPI_Alltoallv", err))
        return -1;
    naive_add(b, n);
    return mfr_mpi(MPI_Type_free(&row), "type", err);
}

static int naive_pass(struct bench *b, struct mf_error *err)
{
    struct naive n = {.count = calloc(EXPERTS, sizeof *n.count)};
    int rc = -1;

    n.theirs = calloc(RANKS * EXPERTS, sizeof *n.theirs);
    n.token = calloc((size_t)b->tokens * TOPK, sizeof *n.token);
    n.weight = room(b->tokens, TOPK);
    n.out = room(b->tokens * TOPK, HIDDEN);
    if (n.count && n.theirs && n.token && n.weight && n.out) {
        naive_pack(b, &n);
        rc = naive_move(b, &n, err);
    }
    free(n.count);
    free(n.theirs);
    free(n.token);
    free(n.weight);
    free(n.out);
    free(n.in);
    free(n.sorted);
    free(n.made);
    free(n.back);
    free(n.gate);
    free(n.up);
    free(n.act);
    return rc;
}

static int check_same(const struct bench *b, struct mf_error *err)
{
    double most = 0, differ = 0;

    for (int64_t i = 0; i < b->tokens * HIDDEN; i++) {
        most = fmax(most, fabs((double)b->y[i]));
        differ = fmax(differ, fabs((double)b->y[i] - (double)b->again[i]));
    }
    return differ <= 1e-4 * most
               ? 0
               : mf_error_set(err, MF_FAILED, "the two differ by %g of %g",
                     differ, most);
}

/* Slowest rank's seconds of each, by turns; route is in neither. */
static int turn(
    struct bench *b, double *ours, double *naive, struct mf_error *err)
{
    const struct mfr_times *times = mfr_layer_times(b->layer);
    double s[2];

    if (mfr_mpi(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier", err) ||
        mfr_layer_forward(b->layer, b->x, b->y, err))
        return -1;
    s[0] = times->pass_s[MF_FORWARD] -
           times->use[MF_PHASE_ROUTE][MF_FORWARD].seconds;
    for (int phase = 0; phase < MF_PHASES; phase++)
        if (!isnan(times->use[phase][MF_FORWARD].seconds))
            b->phase_s[phase] += times->use[phase][MF_FORWARD].seconds;
    if (mfr_mpi(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier", err))
        return -1;
    s[1] = mfr_now();
    if (naive_pass(b, err))
        return -1;
    s[1] = mfr_now() - s[1];
    if (mfr_mpi(MPI_Allreduce(
                    MPI_IN_PLACE, s, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD),
            "MPI_Allreduce", err))
        return -1;
    *ours = s[0];
    *naive = s[1];
    return check_same(b, err);
}

static void print(const struct bench *b, double *ours, double *naive)
{
    const double a = mfr_median(REPEATS, ours), n = mfr_median(REPEATS, naive);
    double all = 0;

    printf("layer, %5lld tokens a rank: ratio of the naive five steps to it "
           "%5.2f (%.3f and %.3f ms)\n  where its time goes:",
        (long long)b->tokens, n / a, 1e3 * n, 1e3 * a);
    for (int phase = 0; phase < MF_PHASES; phase++)
        all += b->phase_s[phase];
    for (int phase = 0; phase < MF_PHASES; phase++)
        if (b->phase_s[phase] > 0)
            printf(" %s %.1f %%", mf_phase_name((enum mf_phase)phase),
                100 * b->phase_s[phase] / all);
    printf("\n");
}

static int measure(
    struct bench *b, const struct mf_layout *layout, struct mf_error *err)
{
    const struct mfr_layer_options how = {.kernel = MFK_BLAS};
    double ours[REPEATS], naive[REPEATS];
    int rc = 0;

    b->shape = (struct mfr_shape){.seq = b->tokens,
        .batch = 1,
        .hidden = HIDDEN,
        .ffn = FFN,
        .experts = EXPERTS,
        .topk = TOPK,
        .scaling = 1};
    if (mfr_layer_create(&b->shape, layout, &b->comms, &how, &b->layer, err))
        return -1;
    b->x = room(b->tokens, HIDDEN);
    b->y = room(b->tokens, HIDDEN);
    b->again = room(b->tokens, HIDDEN);
    if (!b->x || !b->y || !b->again)
        return mf_error_set(err, MF_FAILED, "out of memory");
    mfr_layer_seed(b->layer, 1);
    mfr_layer_seed_input(b->layer, 1, b->x);
    for (int i = -2; rc == 0 && i < REPEATS; i++) {
        const int at = i < 0 ? 0 : i;

        if (i == 0)
            memset(b->phase_s, 0, sizeof b->phase_s);
        rc = turn(b, &ours[at], &naive[at], err);
    }
    if (rc == 0 && b->comms.rank == 0)
        print(b, ours, naive);
    mfr_layer_free(b->layer);
    free(b->x);
    free(b->y);
    free(b->again);
    return rc;
}

static int bench_all(struct mf_error *err)
{
    struct mf_layout layout;
    struct mfr_comms comms;
    int rc = 0;

    if (mf_layout_parse("dp2/ep2", &layout, err) ||
        mf_layout_resolve(&layout, RANKS, ~0u, err) ||
        mfr_comms_create(MPI_COMM_WORLD, &layout, &comms, err))
        return -1;
    for (int64_t tokens = 64; rc == 0 && tokens <= 1024; tokens *= 4) {
        struct bench bench = {.comms = comms, .tokens = tokens};

        rc = measure(&bench, &layout, err);
    }
    mfr_comms_free(&comms);
    return rc;
}

int main(void)
{
    struct mf_error err = {MF_FAILED, ""};
    int ranks = 0;

    if (MPI_Init(NULL, NULL) != MPI_SUCCESS ||
        MPI_Comm_size(MPI_COMM_WORLD, &ranks) != MPI_SUCCESS)
        return 1;
    mfk_set_threads(1);
    if (ranks != RANKS || bench_all(&err)) {
        fprintf(
            stderr, "layer: %s\n", ranks == RANKS ? err.text : "needs 2 ranks");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return MPI_Finalize() == MPI_SUCCESS ? 0 : 1;
}
