/* SPDX-License-Identifier: BSD-3-Clause
 * The command line of moefold-run.
 */
#include "runtime/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "planner/layout/number.h"
#include "runtime/device.h"

#define MOST ((int64_t)1 << 40)

/* Takes VALUE (NULL for a flag) into OPTIONS. */
typedef int take_fn(
    struct mfr_options *options, const char *value, struct mf_error *err);

struct option {
    const char *name, *value, *help;
    take_fn *take;
};

static int take_pick(
    struct mfr_options *options, const char *value, struct mf_error *err)
{
    return mf_number_parse(value, "--pick", 1, MOST, &options->pick, err);
}

static int take_iterations(
    struct mfr_options *options, const char *value, struct mf_error *err)
{
    return mf_number_parse(
        value, "--iterations", 1, MOST, &options->iterations, err);
}

static int take_warmup(
    struct mfr_options *options, const char *value, struct mf_error *err)
{
    return mf_number_parse(value, "--warmup", 0, MOST, &options->warmup, err);
}

static int take_pipeline(
    struct mfr_options *options, const char *value, struct mf_error *err)
{
    return mf_number_parse(
        value, "--pipeline", 1, 1 << 20, &options->pipeline, err);
}

static int take_layers(
    struct mfr_options *options, const char *value, struct mf_error *err)
{
    return mf_number_parse(
        value, "--layers", 1, 1 << 16, &options->layers, err);
}

static int take_one_in(
    struct mfr_options *options, const char *value, struct mf_error *err)
{
    return mf_number_parse(value, "--one-in", 1, MOST, &options->one_in, err);
}

static int take_seed(
    struct mfr_options *options, const char *value, struct mf_error *err)
{
    return mf_number_parse(value, "--seed", 0, INT64_MAX, &options->seed, err);
}

static int take_backend(
    struct mfr_options *options, const char *value, struct mf_error *err)
{
    if (!mfr_backend_valid(value))
        return mf_error_set(err, MF_INVALID,
            "--backend %s: cpu, cuda or auto, in lower-case letters", value);
    options->backend = value;
    return 0;
}

static int take_comm(
    struct mfr_options *options, const char *value, struct mf_error *err)
{
    static const char *const names[] = {
        [MFR_COMM_AUTO] = "auto",
        [MFR_COMM_MPI] = "mpi",
        [MFR_COMM_NCCL] = "nccl",
    };

    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (!strcmp(value, names[i])) {
            options->comm = (enum mfr_comm_kind)i;
            return 0;
        }
    return mf_error_set(
        err, MF_INVALID, "--comm %s: it is mpi, nccl or auto", value);
}

static int take_exchange(
    struct mfr_options *options, const char *value, struct mf_error *err)
{
    options->padded = !strcmp(value, "padded");
    if (options->padded || !strcmp(value, "exact"))
        return 0;
    return mf_error_set(
        err, MF_INVALID, "--exchange %s: it is exact or padded", value);
}

static int take_experts(
    struct mfr_options *options, const char *value, struct mf_error *err)
{
    if (!strcmp(value, "blas"))
        options->kernel = MFK_BLAS;
    else if (!strcmp(value, "exact"))
        options->kernel = MFK_EXACT;
    else
        return mf_error_set(
            err, MF_INVALID, "--experts %s: it is blas or exact", value);
    if (options->kernel == MFK_BLAS && !mfk_has_blas())
        return mf_error_set(err, MF_INVALID,
            "--experts blas: this build has no BLAS; use exact");
    return 0;
}

static int take_dispatcher(
    struct mfr_options *options, const char *value, struct mf_error *err)
{
    const int found = mf_dispatcher_find(value);

    if (found != MF_ALLTOALL && found != MF_ALLGATHER && found != MF_DEDUP)
        return mf_error_set(err, MF_INVALID,
            "--dispatcher %s: it is alltoall, allgather or dedup", value);
    options->dispatcher = (enum mf_dispatcher)found;
    return 0;
}

static int take_transport(
    struct mfr_options *options, const char *value, struct mf_error *err)
{
    options->transport.mpi_only = !strcmp(value, "mpi");
    if (options->transport.mpi_only || !strcmp(value, "auto"))
        return 0;
    return mf_error_set(
        err, MF_INVALID, "--transport %s: it is auto or mpi", value);
}

static int take_node_ranks(
    struct mfr_options *options, const char *value, struct mf_error *err)
{
    return mf_number_parse(value, "--node-ranks", 1, INT32_MAX,
        &options->transport.node_ranks, err);
}

static int take_timeout(
    struct mfr_options *options, const char *value, struct mf_error *err)
{
    int64_t seconds;

    if (mf_number_parse(value, "--timeout", 1, 86400, &seconds, err))
        return -1;
    options->timeout_s = (double)seconds;
    return 0;
}

static int take_fault(
    struct mfr_options *options, const char *value, struct mf_error *err)
{
    const int fault = mfr_fault_find(value);

    if (fault < 0)
        return mf_error_set(err, MF_INVALID,
            "--fault %s: it is none, wrong-group, skip-edp-sum or "
            "drop-last-row",
            value);
    options->fault = (enum mfr_fault)fault;
    return 0;
}

static int take_db(
    struct mfr_options *options, const char *value, struct mf_error *err)
{
    (void)err;
    options->db = value;
    return 0;
}

static int take_run_dir(
    struct mfr_options *options, const char *value, struct mf_error *err)
{
    (void)err;
    options->run_dir = value;
    return 0;
}

static int take_load(
    struct mfr_options *options, const char *value, struct mf_error *err)
{
    (void)err;
    options->load = value;
    return 0;
}

static int take_dump(
    struct mfr_options *options, const char *value, struct mf_error *err)
{
    (void)err;
    options->dump = value;
    return 0;
}

static int take_trace(
    struct mfr_options *options, const char *value, struct mf_error *err)
{
    (void)err;
    options->trace = value;
    return 0;
}

static int take_no_history(
    struct mfr_options *options, const char *value, struct mf_error *err)
{
    (void)value, (void)err;
    options->no_history = true;
    return 0;
}

static int take_json(
    struct mfr_options *options, const char *value, struct mf_error *err)
{
    (void)value, (void)err;
    options->json = true;
    return 0;
}

static int take_quiet(
    struct mfr_options *options, const char *value, struct mf_error *err)
{
    (void)value, (void)err;
    options->quiet = true;
    return 0;
}

static int take_full(
    struct mfr_options *options, const char *value, struct mf_error *err)
{
    (void)value, (void)err;
    options->full = true;
    return 0;
}

static int take_mode(
    struct mfr_options *options, enum mfr_mode mode, struct mf_error *err)
{
    if (options->mode != MFR_MODE_RUN && options->mode != mode)
        return mf_error_set(err, MF_INVALID,
            "--verify, --verify-all and --probe exclude each other");
    options->mode = mode;
    return 0;
}

static int take_verify(
    struct mfr_options *options, const char *value, struct mf_error *err)
{
    (void)value;
    return take_mode(options, MFR_MODE_VERIFY, err);
}

static int take_gate(
    struct mfr_options *options, const char *value, struct mf_error *err)
{
    (void)value;
    return take_mode(options, MFR_MODE_GATE, err);
}

static int take_verify_all(
    struct mfr_options *options, const char *value, struct mf_error *err)
{
    (void)value;
    return take_mode(options, MFR_MODE_VERIFY_ALL, err);
}

static int take_probe(
    struct mfr_options *options, const char *value, struct mf_error *err)
{
    (void)value;
    return take_mode(options, MFR_MODE_PROBE, err);
}

static const struct option table[] = {
    {"pick", "K", "the plan's Kth layout (1)", take_pick},
    {"iterations", "N", "timed iterations (20)", take_iterations},
    {"warmup", "N", "iterations before them (3)", take_warmup},
    {"seed", "N", "of weights, inputs and gradients (1)", take_seed},
    {"experts", "blas|exact", "product of the experts (blas where it is)",
        take_experts},
    {"backend", "cpu|cuda|auto", "what computes (auto: cuda for GPU plans)",
        take_backend},
    {"dispatcher", "NAME", "alltoall, allgather or dedup (the plan's)",
        take_dispatcher},
    {"transport", "auto|mpi", "inside a node: shared memory, or MPI alone",
        take_transport},
    {"node-ranks", "N", "as if each node held N ranks, for tests",
        take_node_ranks},
    {"timeout", "SECONDS", "to wait for a peer (300)", take_timeout},
    {"comm", "mpi|nccl|auto", "what communicates (auto: nccl between GPUs)",
        take_comm},
    {"exchange", "exact|padded",
        "between GPUs: rows as they are, or equal counts", take_exchange},
    {"db", "FILE", "history ($MOEFOLD_DB, else in the XDG data folder)",
        take_db},
    {"no-history", NULL, "record nothing", take_no_history},
    {"run-dir", "DIR", "where the spool goes when no history can be kept",
        take_run_dir},
    {"load", "FILE", "weights and tokens from FILE (safetensors)", take_load},
    {"dump", "FILE", "output and gradients of the last iteration to FILE",
        take_dump},
    {"trace", "FILE", "a timeline for chrome://tracing or Perfetto",
        take_trace},
    {"verify", NULL, "hold the layout against the references instead",
        take_verify},
    {"full", NULL, "with --verify: the plan's whole shape", take_full},
    {"gate", NULL, "route before and after the gather, and compare", take_gate},
    {"verify-all", NULL, "verify every layout of this job's world",
        take_verify_all},
    {"pipeline", "M", "then M micro batches through all stages, 1F1B",
        take_pipeline},
    {"layers", "N", "with --pipeline: layers a stage (1)", take_layers},
    {"one-in", "N", "with --verify-all: of N layouts one, drawn by the seed",
        take_one_in},
    {"fault", "NAME", "with --verify, --verify-all: seed a fault", take_fault},
    {"probe", NULL, "exchange rate and latency between 2 ranks", take_probe},
    {"json", NULL, "one JSON document", take_json},
    {"quiet", NULL, "print nothing when all is well", take_quiet},
    {NULL, NULL, NULL, NULL},
};

void mfr_options_describe(const struct mfr_options *o, char *text, size_t size)
{
    static const char *const modes[] = {[MFR_MODE_RUN] = "run",
        [MFR_MODE_VERIFY] = "verify",
        [MFR_MODE_VERIFY_ALL] = "verify-all",
        [MFR_MODE_GATE] = "gate",
        [MFR_MODE_PROBE] = "probe",
        [MFR_MODE_HELP] = "help",
        [MFR_MODE_VERSION] = "version"};

    snprintf(text, size,
        "%s --pick %" PRId64 " --iterations %" PRId64 " --warmup %" PRId64
        " --seed %" PRId64 " --experts %s --backend %s --dispatcher %s "
        "--transport %s --node-ranks %" PRId64 " --comm %d --exchange %s "
        "--fault %s --one-in %" PRId64 " --pipeline %" PRId64
        " --layers %" PRId64 "%s%s",
        modes[o->mode], o->pick, o->iterations, o->warmup, o->seed,
        o->kernel == MFK_EXACT ? "exact" : "blas", o->backend,
        mf_dispatcher_name(o->dispatcher),
        o->transport.mpi_only ? "mpi" : "auto", o->transport.node_ranks,
        (int)o->comm, o->padded ? "padded" : "exact", mfr_fault_name(o->fault),
        o->one_in, o->pipeline, o->layers, o->trace ? " --trace" : "",
        o->full ? " --full" : "");
}

void mfr_options_help(void)
{
    fputs("usage: mpirun -n WORLD moefold-run PLAN [OPTION]…\n"
          "Runs and times a folded MoE layer in each pipeline stage of a "
          "plan.\n",
        stdout);
    for (const struct option *o = table; o->name; o++) {
        char text[64];

        snprintf(text, sizeof text, "--%s%s%s", o->name, o->value ? " " : "",
            o->value ? o->value : "");
        printf("  %-23s %s\n", text, o->help);
    }
    fputs("  --help                  show this\n"
          "  --version               show the version\n"
          "OPENBLAS_NUM_THREADS: threads a rank's products use (1).\n"
          "Exit status: 0 done, 1 it failed, 2 wrong usage or input, 3 a "
          "difference found.\n",
        stdout);
}

/* The option called NAME, LENGTH bytes of it; NULL: none. */
static const struct option *find(const char *name, size_t length)
{
    for (const struct option *o = table; o->name; o++)
        if (strlen(o->name) == length && !strncmp(o->name, name, length))
            return o;
    return NULL;
}

/* argv[*at], which begins with "--"; its value may be the next one. */
static int take_option(int argc, char **argv, int *at,
    struct mfr_options *options, struct mf_error *err)
{
    const char *name = argv[*at] + 2, *equals = strchr(name, '=');
    const size_t length = equals ? (size_t)(equals - name) : strlen(name);
    const struct option *option = find(name, length);
    const char *value = equals ? equals + 1 : NULL;

    if (!option)
        return mf_error_set(err, MF_INVALID,
            "unknown option --%.*s; see moefold-run --help", (int)length, name);
    if (value && !option->value)
        return mf_error_set(
            err, MF_INVALID, "--%s takes no value", option->name);
    if (!value && option->value) {
        if (*at + 1 >= argc)
            return mf_error_set(
                err, MF_INVALID, "--%s needs %s", option->name, option->value);
        value = argv[++*at];
    }
    return option->take(options, value, err);
}

static int take_operand(
    const char *text, struct mfr_options *options, struct mf_error *err)
{
    if (options->plan)
        return mf_error_set(err, MF_INVALID,
            "one plan at a time, not %s and %s", options->plan, text);
    options->plan = text;
    return 0;
}

static int options_check(
    const struct mfr_options *options, struct mf_error *err)
{
    const bool verify = options->mode == MFR_MODE_VERIFY ||
                        options->mode == MFR_MODE_VERIFY_ALL;
    const bool takes_plan =
        options->mode == MFR_MODE_RUN || options->mode == MFR_MODE_VERIFY;

    if (takes_plan && !options->plan)
        return mf_error_set(
            err, MF_INVALID, "which plan? see moefold-run --help");
    if (!takes_plan && options->mode != MFR_MODE_GATE && options->plan)
        return mf_error_set(err, MF_INVALID, "%s: --%s takes no plan",
            options->plan,
            options->mode == MFR_MODE_PROBE ? "probe" : "verify-all");
    if (options->fault != MFR_FAULT_NONE && !verify)
        return mf_error_set(
            err, MF_INVALID, "--fault goes with --verify or --verify-all");
    if (options->trace && options->mode != MFR_MODE_RUN)
        return mf_error_set(err, MF_INVALID, "--trace goes with a run");
    if (options->pipeline && options->mode != MFR_MODE_RUN)
        return mf_error_set(err, MF_INVALID, "--pipeline goes with a run");
    if (options->layers && !options->pipeline)
        return mf_error_set(err, MF_INVALID, "--layers goes with --pipeline");
    if (options->one_in && options->mode != MFR_MODE_VERIFY_ALL)
        return mf_error_set(err, MF_INVALID, "--one-in goes with --verify-all");
    if (options->full && options->mode != MFR_MODE_VERIFY &&
        options->mode != MFR_MODE_GATE)
        return mf_error_set(err, MF_INVALID, "--full goes with --verify");
    return 0;
}

int mfr_options_parse(
    int argc, char **argv, struct mfr_options *options, struct mf_error *err)
{
    bool only_operands = false;

    *options = (struct mfr_options){
        .mode = MFR_MODE_RUN,
        .pick = 1,
        .iterations = 20,
        .warmup = 3,
        .seed = 1,
        .kernel = mfk_has_blas() ? MFK_BLAS : MFK_EXACT,
        .backend = "auto",
        .dispatcher = MF_DISPATCHER_AUTO,
        .timeout_s = 300,
    };
    for (int i = 1; i < argc; i++) {
        const char *text = argv[i];

        if (!only_operands && !strcmp(text, "--help")) {
            options->mode = MFR_MODE_HELP;
            return 0;
        }
        if (!only_operands && !strcmp(text, "--version")) {
            options->mode = MFR_MODE_VERSION;
            return 0;
        }
        if (!only_operands && !strcmp(text, "--")) {
            only_operands = true;
        } else if (!only_operands && !strncmp(text, "--", 2)) {
            if (take_option(argc, argv, &i, options, err))
                return -1;
        } else if (!only_operands && text[0] == '-' && text[1]) {
            return mf_error_set(err, MF_INVALID,
                "unknown option %s; see moefold-run --help", text);
        } else if (take_operand(text, options, err)) {
            return -1;
        }
    }
    return options_check(options, err);
}
