/* SPDX-License-Identifier: BSD-3-Clause
 * How fast a core of this machine copies and multiplies while its peers do the
 * same. Done in a child, since OpenBLAS is loaded for it: linked, it would
 * cost each start of moefold its thread pool.
 */
#include "config.h"

#include "planner/cluster_machine.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "planner/child.h"

#define COPY_S 0.35 /* measured for about as long each */
#define SGEMM_S 0.35
#define LIMIT_S 60 /* for a machine that is very busy, or under valgrind */
#define SGEMM_SIZE 384
#define THREADS_MAX 256
#define BUFFER_LEAST ((size_t)16 << 20)
#define BUFFER_MOST ((size_t)256 << 20)
#define BLAS_LIBRARY "libopenblas.so.0"

typedef void (*sgemm_function)(int order, int trans_a, int trans_b, int m,
    int n, int k, float alpha, const float *a, int lda, const float *b, int ldb,
    float beta, float *c, int ldc);

const char *mf_machine_sgemm_name(void)
{
#ifdef HAVE_BLAS
    return "OpenBLAS";
#else
    return "a plain loop";
#endif
}

static double now_s(void)
{
    struct timespec t;

    if (clock_gettime(CLOCK_MONOTONIC, &t) != 0)
        return 0;
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* c += a*b, row major. */
static void sgemm_plain(int order, int trans_a, int trans_b, int m, int n,
    int k, float alpha, const float *a, int lda, const float *b, int ldb,
    float beta, float *restrict c, int ldc)
{
    (void)order, (void)trans_a, (void)trans_b, (void)beta;
    for (int i = 0; i < m; i++)
        for (int l = 0; l < k; l++) {
            float x = alpha * a[i * lda + l];

            for (int j = 0; j < n; j++)
                c[i * ldc + j] += x * b[l * ldb + j];
        }
}

#ifdef HAVE_BLAS

static sgemm_function sgemm_find(void)
{
    void *library, *symbol;
    sgemm_function function;

    if (setenv("OPENBLAS_NUM_THREADS", "1", 1) != 0)
        return NULL;
    library = dlopen(BLAS_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    symbol = library ? dlsym(library, "cblas_sgemm") : NULL;
    if (!symbol)
        return NULL;
    memcpy(&function, &symbol, sizeof function); /* POSIX, not ISO C */
    return function;
}

#else

static sgemm_function sgemm_find(void)
{
    return NULL;
}

#endif

struct worker {
    pthread_t thread;
    pthread_barrier_t *start;
    sgemm_function sgemm;
    char *from, *to;
    float *a, *b, *c;
    size_t bytes;
    struct mf_rates rates;
};

/* The best pass counts: others are disturbed. */
static double copy_rate(struct worker *w)
{
    double end = now_s() + COPY_S, best = 0;

    for (int pass = 0; pass < 3 || now_s() < end; pass++) {
        double start = now_s(), rate;

        w->from[pass & 0xfff] = (char)pass;
        memcpy(w->to, w->from, w->bytes);
        rate = 2.0 * (double)w->bytes / (now_s() - start);
        best = rate > best ? rate : best;
    }
    return best;
}

static double sgemm_rate(struct worker *w)
{
    const int n = SGEMM_SIZE, row_major = 101, plain = 111;
    double end = now_s() + SGEMM_S, best = 0;

    for (int pass = 0; pass < 3 || now_s() < end; pass++) {
        double start = now_s(), rate;

        w->sgemm(
            row_major, plain, plain, n, n, n, 1, w->a, n, w->b, n, 1, w->c, n);
        rate = 2.0 * n * n * n / (now_s() - start);
        best = rate > best ? rate : best;
    }
    return best;
}

static void *worker_run(void *arg)
{
    struct worker *w = arg;

    memset(w->from, 1, w->bytes);
    memset(w->to, 2, w->bytes);
    for (int i = 0; i < SGEMM_SIZE * SGEMM_SIZE; i++) {
        w->a[i] = (float)(i % 17) * 0.01f;
        w->b[i] = (float)(i % 13) * 0.01f;
        w->c[i] = 0;
    }
    pthread_barrier_wait(w->start);
    w->rates.copy_bytes_per_s = copy_rate(w);
    pthread_barrier_wait(w->start);
    w->rates.sgemm_flops = sgemm_rate(w);
    return NULL;
}

struct measure {
    int threads;
    size_t bytes; /* of each buffer */
};

static int workers_prepare(struct worker *w, const struct measure *m,
    pthread_barrier_t *start, sgemm_function sgemm)
{
    size_t matrix = (size_t)SGEMM_SIZE * SGEMM_SIZE * sizeof(float);

    for (int i = 0; i < m->threads; i++) {
        w[i].start = start;
        w[i].sgemm = sgemm;
        w[i].bytes = m->bytes;
        w[i].from = aligned_alloc(4096, m->bytes);
        w[i].to = aligned_alloc(4096, m->bytes);
        w[i].a = aligned_alloc(4096, matrix);
        w[i].b = aligned_alloc(4096, matrix);
        w[i].c = aligned_alloc(4096, matrix);
        if (!w[i].from || !w[i].to || !w[i].a || !w[i].b || !w[i].c)
            return -1;
    }
    return 0;
}

static int rates_write(int fd, const struct worker *w, int threads)
{
    struct mf_rates mean = {0};
    char text[128];
    int length;

    for (int i = 0; i < threads; i++) {
        mean.copy_bytes_per_s += w[i].rates.copy_bytes_per_s / threads;
        mean.sgemm_flops += w[i].rates.sgemm_flops / threads;
    }
    length = snprintf(text, sizeof text, "%.17g %.17g\n", mean.copy_bytes_per_s,
        mean.sgemm_flops);
    return mf_child_write(fd, text, (size_t)length);
}

/* In the child: what is taken is given back by its end. */
static int measure(int fd, void *arg)
{
    const struct measure *m = arg;
    sgemm_function sgemm = sgemm_find();
    struct worker *w = calloc((size_t)m->threads, sizeof *w);
    pthread_barrier_t start;

    if (!w || pthread_barrier_init(&start, NULL, (unsigned)m->threads) != 0 ||
        workers_prepare(w, m, &start, sgemm ? sgemm : sgemm_plain) < 0) {
        fprintf(stderr, "not enough memory to measure\n");
        return 1;
    }
    for (int i = 1; i < m->threads; i++)
        if (pthread_create(&w[i].thread, NULL, worker_run, &w[i]) != 0) {
            fprintf(stderr, "cannot start %d threads\n", m->threads);
            return 1;
        }
    worker_run(&w[0]);
    for (int i = 1; i < m->threads; i++)
        if (pthread_join(w[i].thread, NULL) != 0)
            return 1;
    return rates_write(fd, w, m->threads) < 0;
}

/* All buffers together are four times the caches, if memory allows. */
static size_t buffer_bytes(const struct mf_machine *machine, int threads)
{
    size_t buffers = 2 * (size_t)threads, bytes, most;

    bytes = 4 * (size_t)machine->cache_bytes / buffers;
    most = (size_t)machine->memory_bytes / 8 / buffers;
    if (bytes < BUFFER_LEAST)
        bytes = BUFFER_LEAST;
    if (bytes > BUFFER_MOST)
        bytes = BUFFER_MOST;
    if (machine->memory_bytes > 0 && bytes > most)
        bytes = most;
    return (bytes + 4096) & ~(size_t)4095;
}

int mf_machine_measure(const struct mf_machine *machine, int64_t cores,
    struct mf_rates *rates, struct mf_error *err)
{
    struct measure m = {
        .threads = cores > THREADS_MAX ? THREADS_MAX : (int)cores};
    struct mf_child_limits limits = {.seconds = LIMIT_S, .output_bytes = 4096};
    struct mf_child child;
    char text[512];
    int rc = -1;

    m.bytes = buffer_bytes(machine, m.threads);
    if (mf_child_call(measure, &m, &limits, &child, err) < 0)
        return -1;
    if (child.end == MF_CHILD_EXITED && child.status == 0 &&
        sscanf(child.output, "%lf %lf", &rates->copy_bytes_per_s,
            &rates->sgemm_flops) == 2 &&
        rates->copy_bytes_per_s > 0 && rates->sgemm_flops > 0)
        rc = 0;
    else {
        mf_child_explain(&child, text, sizeof text);
        mf_error_set(err, MF_FAILED, "cannot measure this machine: %s", text);
    }
    mf_child_free(&child);
    return rc;
}
