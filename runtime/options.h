/* SPDX-License-Identifier: BSD-3-Clause
 * The command line of moefold-run, as a table that parsing and --help read.
 */
#ifndef MFR_OPTIONS_H
#define MFR_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "planner/layout/error.h"
#include "runtime/device.h"
#include "runtime/layer.h"

enum mfr_mode {
    MFR_MODE_RUN,
    MFR_MODE_VERIFY,
    MFR_MODE_VERIFY_ALL,
    MFR_MODE_GATE,
    MFR_MODE_PROBE,
    MFR_MODE_HELP,
    MFR_MODE_VERSION,
};

/* Texts are those of argv. */
struct mfr_options {
    enum mfr_mode mode;
    const char *plan; /* NULL: none given */
    int64_t pick;     /* from 1 */
    int64_t iterations, warmup;
    int64_t one_in;           /* of --verify-all */
    int64_t pipeline, layers; /* micro batches, 0: none; layers a stage */
    int64_t seed;
    enum mfk_gemm kernel;
    const char *backend;           /* "auto", "cpu", or a plug-in's name */
    enum mf_dispatcher dispatcher; /* AUTO: the plan's */
    struct mfr_transport transport;
    double timeout_s; /* to wait for a peer */
    enum mfr_comm_kind comm;
    bool padded; /* exchanges between devices */
    enum mfr_fault fault;
    const char *trace;        /* NULL: none */
    const char *load, *dump;  /* NULL: none */
    const char *db, *run_dir; /* NULL: not given */
    bool no_history, json, quiet, full;
};

int mfr_options_parse(
    int argc, char **argv, struct mfr_options *options, struct mf_error *err);

/* What ranks must have in common, in one line. */
void mfr_options_describe(
    const struct mfr_options *options, char *text, size_t size);

void mfr_options_help(void);

#endif
