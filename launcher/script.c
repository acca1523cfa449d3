/* SPDX-License-Identifier: BSD-3-Clause
 * The batch script of a job.
 *
 * Every value from a plan or a user is quoted for where it stands (see
 * launcher/quote.h). `srun` is named without a path on purpose: that is how
 * people write it, and a job finds the one of its own cluster.
 */
#include "config.h"

#include "launcher/script.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/quote.h"

static void directive_of(
    FILE *out, const char *option, int length, const char *value)
{
    fprintf(out, "#SBATCH --%.*s=", length, option);
    mfl_quote_sbatch(value, out);
    fputc('\n', out);
}

static void directive(FILE *out, const char *option, const char *value)
{
    directive_of(out, option, (int)strlen(option), value);
}

static void directives(FILE *out, const struct mfl_job *job)
{
    char time[32];

    directive(out, "job-name", job->name);
    if (job->partition)
        directive(out, "partition", job->partition);
    if (job->account)
        directive(out, "account", job->account);
    if (job->qos)
        directive(out, "qos", job->qos);
    fprintf(out, "#SBATCH --nodes=%lld\n", (long long)job->nodes);
    fprintf(out, "#SBATCH --ntasks=%lld\n", (long long)job->ranks);
    fprintf(out, "#SBATCH --ntasks-per-node=%lld\n",
        (long long)job->ranks_per_node);
    if (job->cpus_per_task)
        fprintf(out, "#SBATCH --cpus-per-task=%lld\n",
            (long long)job->cpus_per_task);
    if (job->gpus_per_node)
        fprintf(out, "#SBATCH --gpus-per-node=%lld\n",
            (long long)job->gpus_per_node);
    if (job->whole_nodes)
        fputs("#SBATCH --exclusive\n", out);
    if (job->switches)
        fprintf(out, "#SBATCH --switches=%lld\n", (long long)job->switches);
    if (job->segment)
        fprintf(out, "#SBATCH --segment=%lld\n", (long long)job->segment);
    if (job->after)
        fprintf(
            out, "#SBATCH --dependency=afterok:%lld\n", (long long)job->after);
    if (job->requeue)
        fprintf(out,
            "#SBATCH --requeue\n#SBATCH --open-mode=append\n"
            "#SBATCH --signal=B:USR2@%d\n",
            MFL_SIGNAL_S);
    mfl_job_format_time(job->time_minutes, time, sizeof time);
    directive(out, "time", time);
    directive(out, "output", job->log);
    for (char *const *extra = job->extra; extra && *extra; extra++) {
        const int name = (int)strcspn(*extra, "=");

        if ((*extra)[name])
            directive_of(out, *extra + 2, name - 2, *extra + name + 1);
        else
            fprintf(out, "#SBATCH %s\n", *extra);
    }
}

static void comment(FILE *out, const char *name, const char *value)
{
    fprintf(out, "# %-10s ", name);
    mfl_quote_comment(value, out);
    fputc('\n', out);
}

static void milliseconds(FILE *out, const char *what, double seconds)
{
    if (isfinite(seconds))
        fprintf(out, "%s %.4g ms", what, 1e3 * seconds);
    else
        fprintf(out, "%s not known", what);
}

static void comment_pick(FILE *out, const struct mf_plan *plan, size_t pick)
{
    const struct mf_plan_entry *entry = &plan->entry[pick - 1];
    char layout[MF_LAYOUT_TEXT], order[64];

    mf_layout_format(&entry->layout, layout, sizeof layout);
    mf_order_format(&entry->layout.order, order, sizeof order);
    fprintf(out, "# layout %-3zu %s order %s%s\n", pick, layout, order,
        entry->layout.coupled ? ", coupled" : "");
    milliseconds(out, "#            predicted: MoE layer",
        entry->cost.layer_forward_s + entry->cost.layer_backward_s);
    if (plan->scope == MF_SCOPE_STEP)
        milliseconds(out, ", step", entry->cost.step_s);
    fputc('\n', out);
}

static void header(FILE *out, const struct mfl_job *job)
{
    const struct mf_plan *plan = job->plan;

    fputs("#\n# Written by moefold " PACKAGE_VERSION "\n", out);
    if (job->command_line)
        comment(out, "command", job->command_line);
    comment(out, "plan", job->plan_file);
    comment(out, "model", plan->model.name);
    comment(out, "cluster", plan->cluster.name);
    for (size_t i = 0; i < job->picks.count; i++)
        comment_pick(out, plan, job->picks.pick[i]);
    if (isfinite(job->predicted_s))
        fprintf(out, "# all of it  predicted: %.4g s, starts not counted\n",
            job->predicted_s);
}

static void assign(FILE *out, const char *name, const char *value)
{
    fprintf(out, "%s=", name);
    mfl_quote_shell(value, out);
    fputc('\n', out);
}

/* `module` is a function that does not bear `set -u`. */
static void modules(FILE *out, const struct mfl_job *job)
{
    if (!job->modules || !*job->modules)
        return;
    fputs("\nmodule load", out);
    for (char *const *name = job->modules; *name; name++) {
        fputc(' ', out);
        mfl_quote_shell(*name, out);
    }
    fputc('\n', out);
}

static void variables(FILE *out, const struct mfl_job *job)
{
    fputs("\nset -euo pipefail\n\n", out);
    assign(out, "plan", job->plan_file);
    if (job->needs_hostfile)
        assign(out, "moefold", job->moefold);
    /* A login node without MPI has none; the job finds its own. */
    assign(out, "runner",
        job->runner && !job->container ? job->runner : "moefold-run");
    if (job->db)
        assign(out, "db", job->db);
    if (job->container)
        assign(out, "image", job->container);
    if (job->container && job->db)
        fputs("folder=$(dirname -- \"$db\")\n", out);
    if (job->slurm.srun_cpus_per_task)
        fprintf(out,
            "\n# srun of Slurm 22.05 to 23.02 reads a task's cores only "
            "here.\n"
            "export SRUN_CPUS_PER_TASK=\"${SLURM_CPUS_PER_TASK:-1}\"\n");
    fprintf(out,
        "%sexport OPENBLAS_NUM_THREADS=\"${SLURM_CPUS_PER_TASK:-1}\"\n\n"
        "# The tree that Slurm 22.05 takes by default lets ranks of a busy\n"
        "# cluster out of MPI_Init too early, and they crash.\n"
        "export SLURM_PMIX_FENCE=\"${SLURM_PMIX_FENCE:-ring}\"\n\n",
        job->slurm.srun_cpus_per_task ? "" : "\n");
    if (job->gpus_per_node)
        fputs("# CUDA, NVML and Slurm count GPUs alike only in this order.\n"
              "export CUDA_DEVICE_ORDER=PCI_BUS_ID\n\n",
            out);
    fputs("# Left over from elsewhere it would silently move the ranks.\n"
          "unset SLURM_HOSTFILE MOEFOLD_MAP\n",
        out);
}

/* With --requeue: stop in time, put the job back, and do not run twice what was
 * run. Nothing is lost by stopping: a run's spool has every whole iteration.
 */
static void restart(FILE *out, const struct mfl_job *job)
{
    if (!job->requeue)
        return;
    fprintf(out,
        "\n# Slurm warns %d s before the end, or up to a minute earlier; USR1 "
        "is\n# NCCL's. A job that is put back goes on with what is left.\n"
        "finished=\"moefold-$SLURM_JOB_ID.done\"\n"
        "step=\n"
        "put_back() {\n"
        "    trap '' USR2\n"
        "    echo 'moefold: the time is nearly up: the job is put back' >&2\n"
        "    [ -z \"$step\" ] || kill -TERM \"$step\" 2>/dev/null || true\n"
        "    [ -z \"$step\" ] || wait \"$step\" || true\n"
        "    scontrol requeue \"$SLURM_JOB_ID\"\n"
        "    exit 0\n"
        "}\n"
        "trap put_back USR2\n",
        MFL_SIGNAL_S);
}

static void placement(FILE *out, const struct mfl_job *job)
{
    if (!job->needs_hostfile)
        return;
    fprintf(out,
        "\n# Slurm fills nodes by name; the plan wants them switch by switch."
        "\n"
        "dir=$(mktemp -d)\n"
        "trap 'rm -rf -- \"$dir\"' EXIT\n"
        "\"$moefold\" map \"$plan\" --hostfile \"$dir/hostfile\" "
        ">\"$dir/map\"\n"
        "seats=$(wc -l <\"$dir/hostfile\")\n"
        "if [ \"$seats\" -ne %lld ]; then\n"
        "    echo \"the host file seats $seats ranks, not %lld\" >&2\n"
        "    exit 1\n"
        "fi\n"
        "export SLURM_HOSTFILE=\"$dir/hostfile\"\n"
        "\n# By this moefold-run checks that each rank sits where it should.\n"
        "MOEFOLD_MAP=$(uniq -c \"$dir/hostfile\" |\n"
        "    sed 's/^ *\\([0-9]*\\) \\(.*\\)$/\\2*\\1/' | paste -sd ,)\n"
        "export MOEFOLD_MAP\n",
        (long long)job->ranks, (long long)job->ranks);
}

/* One srun, its lines indented by INDENT. */
static void step(FILE *out, const struct mfl_job *job, const char *indent)
{
    fprintf(out,
        "%ssrun --mpi=pmix --kill-on-bad-exit=1 --wait=60 --ntasks=%lld",
        indent, (long long)job->ranks);
    if (job->needs_hostfile)
        fprintf(out, " \\\n%s    --distribution=arbitrary", indent);
    else
        fprintf(out, " \\\n%s    --ntasks-per-node=%lld --distribution=block",
            indent, (long long)job->ranks_per_node);
    if (job->container)
        fprintf(out,
            " \\\n%s    --container-image=\"$image\" \\\n%s    "
            "--container-mounts=\"$plan:$plan:ro%s\" \\\n%s    "
            "--container-env=OPENBLAS_NUM_THREADS,CUDA_DEVICE_ORDER%s",
            indent, indent, job->db ? ",$folder:$folder" : "", indent,
            job->needs_hostfile ? ",MOEFOLD_MAP" : "");
    fprintf(out, " \\\n%s    \"$runner\" \"$plan\" --pick ", indent);
    if (job->picks.count > 1 || job->requeue)
        fputs("\"$pick\"", out);
    else
        fprintf(out, "%zu", job->picks.pick[0]);
    fprintf(out, " --iterations %lld%s%s\n", (long long)job->iterations,
        job->db ? " --db \"$db\"" : "", job->requeue ? " &" : "");
    if (job->requeue)
        fprintf(out,
            "%sstep=$!\n%swait \"$step\"\n%sstep=\n"
            "%secho \"$pick\" >>\"$finished\"\n",
            indent, indent, indent, indent);
}

/* A pick that a job before its requeue has finished is not run again. */
static void unless_finished(FILE *out, const char *indent)
{
    fprintf(out, "%sif ! grep -qx \"$pick\" \"$finished\" 2>/dev/null; then\n",
        indent);
}

static void steps(FILE *out, const struct mfl_job *job)
{
    const bool many = job->picks.count > 1;
    const char *indent = many ? "    " : "";
    char deeper[16];

    fputc('\n', out);
    if (many) {
        fputs("for pick in", out);
        for (size_t i = 0; i < job->picks.count; i++)
            fprintf(out, " %zu", job->picks.pick[i]);
        fputs("; do\n", out);
    } else if (job->requeue)
        fprintf(out, "pick=%zu\n", job->picks.pick[0]);
    if (job->requeue)
        unless_finished(out, indent);
    snprintf(deeper, sizeof deeper, "%s%s", indent, job->requeue ? "    " : "");
    step(out, job, deeper);
    if (job->requeue)
        fprintf(out, "%sfi\n", indent);
    if (many)
        fputs("done\n", out);
    if (job->requeue)
        fputs("rm -f -- \"$finished\"\n", out);
}

char *mfl_script_text(const struct mfl_job *job, struct mf_error *err)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    bool failed;

    if (!out) {
        mf_error_set(err, MF_FAILED, "out of memory");
        return NULL;
    }
    fputs("#!/bin/bash\n", out);
    directives(out, job);
    header(out, job);
    modules(out, job);
    variables(out, job);
    restart(out, job);
    placement(out, job);
    steps(out, job);
    failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed) {
        mf_error_set(err, MF_FAILED, "out of memory");
        free(text);
        return NULL;
    }
    return text;
}
