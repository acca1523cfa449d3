/* SPDX-License-Identifier: BSD-3-Clause
 * moefold-run: runs, verifies and times folded MoE layers under MPI.
 */
#include "config.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "planner/layout/streams.h"
#include "runtime/comm.h"
#include "runtime/gate.h"
#include "runtime/guard.h"
#include "runtime/options.h"
#include "runtime/preflight.h"
#include "runtime/probe.h"
#include "runtime/run.h"
#include "runtime/setup.h"
#include "runtime/verify.h"
#include "runtime/walk.h"

static int verify(
    const struct mfr_options *options, bool *held, struct mf_error *err)
{
    const struct mfr_verify_options verify = {
        .plan = options->plan,
        .pick = options->pick,
        .full = options->full,
        .json = options->json,
        .quiet = options->quiet,
        .kernel = options->kernel,
        .seed = (uint64_t)options->seed,
        .fault = options->fault,
        .transport = &options->transport,
        .dispatcher = options->dispatcher,
        .backend = options->backend,
        .comm = options->comm,
        .padded = options->padded,
    };
    const struct mfr_walk_options walk = {
        .json = options->json,
        .quiet = options->quiet,
        .kernel = options->kernel,
        .seed = (uint64_t)options->seed,
        .one_in = options->one_in,
        .fault = options->fault,
        .transport = &options->transport,
        .dispatcher = options->dispatcher == MF_DISPATCHER_AUTO
                          ? MF_ALLTOALL
                          : options->dispatcher,
        .backend = options->backend,
        .comm = options->comm,
        .padded = options->padded,
    };

    if (options->mode == MFR_MODE_GATE)
        return mfr_gate_main(MPI_COMM_WORLD, &verify, held, err);
    return options->mode == MFR_MODE_VERIFY
               ? mfr_verify_main(MPI_COMM_WORLD, &verify, held, err)
               : mfr_walk_main(MPI_COMM_WORLD, &walk, held, err);
}

/* argv in one line; malloc'd, or NULL. */
static char *join(int argc, char **argv)
{
    size_t length = 1;
    char *line, *at;

    for (int i = 0; i < argc; i++)
        length += strlen(argv[i]) + 1;
    line = malloc(length);
    if (!line)
        return NULL;
    at = line;
    for (int i = 0; i < argc; i++) {
        const size_t n = strlen(argv[i]);
        if (i > 0)
            *at++ = ' ';
        memcpy(at, argv[i], n);
        at += n;
    }
    *at = 0;
    return line;
}

/* The exit status; *ALONE as mfr_run_main says. */
static int work(int argc, char **argv, const struct mfr_options *options,
    bool *alone, struct mf_error *err)
{
    bool held = true;
    char *command, choices[256];
    int rc = -1;

    /* Ranks share the cores of a node; threads of each would only collide. */
    if (!getenv("OPENBLAS_NUM_THREADS"))
        mfk_set_threads(1);
    mfr_options_describe(options, choices, sizeof choices);
    if (mfr_setup_same(MPI_COMM_WORLD, choices, err))
        return err->status;
    if (mfr_preflight(MPI_COMM_WORLD, getenv(MFR_PREFLIGHT_MAP), err))
        return err->status;
    switch (options->mode) {
    case MFR_MODE_PROBE:
        rc = mfr_probe_main(MPI_COMM_WORLD, options, err);
        break;
    case MFR_MODE_VERIFY:
    case MFR_MODE_VERIFY_ALL:
    case MFR_MODE_GATE:
        rc = verify(options, &held, err);
        break;
    case MFR_MODE_RUN:
        command = join(argc, argv);
        rc = mfr_run_main(
            MPI_COMM_WORLD, options, command ? command : "", alone, err);
        free(command);
        break;
    case MFR_MODE_HELP:
    case MFR_MODE_VERSION:
        rc = 0;
        break;
    }
    if (rc)
        return err->status;
    return held ? MF_OK : MF_NO;
}

static void complain(const struct mf_error *err)
{
    if (err->text[0])
        fprintf(stderr, "moefold-run: %s\n", err->text);
}

static void notice(void *with, const char *text)
{
    (void)with;
    fprintf(stderr, "moefold-run: %s\n", text);
}

/* Buffers of calls in progress are still MPI's: nothing is freed. Output that
 * was begun is no document, and is left unwritten.
 */
static void give_up(void *with, const struct mf_error *err, bool in_call)
{
    complain(err);
    if (in_call)
        _exit(MF_FAILED);
    mfr_guard_farewell(*(mfr_guard **)with);
    MPI_Abort(MPI_COMM_WORLD, MF_FAILED);
    _exit(MF_FAILED);
}

static int run_under_mpi(int argc, char **argv,
    const struct mfr_options *options, int parsed, struct mf_error *err)
{
    mfr_guard *guard = NULL;
    const struct mfr_guard_options how = {.timeout_s = options->timeout_s,
        .notice = notice,
        .give_up = give_up,
        .with = &guard};
    bool alone = false;
    int rank = 0, status = MF_INVALID;

    if (MPI_Init(NULL, NULL) != MPI_SUCCESS ||
        MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS ||
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN) !=
            MPI_SUCCESS) {
        fputs("moefold-run: MPI cannot start\n", stderr);
        return MF_FAILED;
    }
    /* One that was started with other arguments must not keep all waiting. */
    parsed = mfr_agree(MPI_COMM_WORLD, parsed, err);
    if (parsed)
        status = err->status;
    if (parsed == 0 && mfr_guard_create(MPI_COMM_WORLD, &how, &guard, err)) {
        alone = true;
        status = err->status;
    } else if (parsed == 0)
        status = work(argc, argv, options, &alone, err);
    if (status != MF_OK && (rank == 0 || alone))
        complain(err);
    if (alone) {
        mfr_guard_farewell(guard);
        MPI_Abort(MPI_COMM_WORLD, status);
    }
    mfr_guard_free(guard);
    return MPI_Finalize() == MPI_SUCCESS ? status : MF_FAILED;
}

int main(int argc, char **argv)
{
    struct mf_error err = {MF_FAILED, ""};
    struct mfr_options options;
    const int parsed = mfr_options_parse(argc, argv, &options, &err);

    if (mf_streams_open() < 0)
        return MF_FAILED;
    if (parsed == 0 && options.mode == MFR_MODE_VERSION) {
        puts("moefold-run " PACKAGE_VERSION);
        return mf_streams_flush() ? MF_FAILED : MF_OK;
    }
    if (parsed == 0 && options.mode == MFR_MODE_HELP) {
        mfr_options_help();
        return mf_streams_flush() ? MF_FAILED : MF_OK;
    }
    return run_under_mpi(argc, argv, &options, parsed, &err);
}
