/* SPDX-License-Identifier: BSD-3-Clause
 * The memory of past runs: one SQLite file, a spool a run, and their queries.
 *
 * Keys and values are plain columns (layout text, phase text, numbers); this
 * library knows nothing of the rest of the project. A run never writes the
 * database while it runs: rank 0 appends to a spool file, which is merged in
 * one transaction at its end, or by whoever opens the database next. Merging
 * a spool twice changes nothing.
 */
#ifndef MFDB_H
#define MFDB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MFDB_SCHEMA 2
#define MFDB_ERROR_TEXT 512
#define MFDB_UUID_TEXT 37 /* with the final 0 */

typedef struct mfdb mfdb;
typedef struct mfdb_spool mfdb_spool;

enum mfdb_mode {
    MFDB_QUERY,  /* read only; a file that is not there is an error */
    MFDB_UPDATE, /* read and write, made when not there, migrated forward */
};

/* Unknown numbers are NAN or -1, unknown texts empty. */
struct mfdb_run {
    char run_id[MFDB_UUID_TEXT];
    double started_at; /* seconds since 1970, UTC */
    double ended_at;
    char status[16];  /* running, done, failed, lost */
    char version[32]; /* of moefold */
    char user[64], command[1024];
    char model[128], cluster[128];
    char layout[160], rank_order[32];
    bool coupled;
    int64_t ranks, nodes;
    char node_list[1024]; /* names, joined by commas */
    char job_id[64];
    char backend[16], comm[16], experts_kernel[16], dispatcher[16];
    char device[128]; /* CPU or GPU model */
    char libraries[256];
    int64_t hidden, ffn, experts, topk, seq, micro_batch, vocab;
    bool gated;
    double imbalance; /* Gini of the expert loads that were seen */
    int64_t iterations;
    double layer_s; /* measured: forward + backward, median */
    double tokens_per_s;
    double predicted_s;    /* the same quantity of the plan, NAN if none */
    char coefficients[64]; /* those the prediction was made with */
};

/* One phase of one iteration, over all ranks of the run. */
struct mfdb_sample {
    int64_t iteration;
    char phase[32];
    char direction[16]; /* forward or backward */
    double min_s, median_s, max_s;
    int64_t slowest_rank;
    double bytes;       /* moved by the hottest rank, NAN: none */
    double flops;       /* of the hottest rank, NAN: none */
    double predicted_s; /* of this phase, NAN: none */
};

/* What stands behind a run that mfdb_best chose. */
struct mfdb_spread {
    int64_t runs;           /* of the same key */
    double least_s, most_s; /* their layer_s */
};

struct mfdb_runs {
    struct mfdb_run *run;
    struct mfdb_spread *spread; /* of each run; NULL: not asked */
    size_t count;
};

struct mfdb_filter {
    const char *model;   /* prefix, whatever its case; NULL: any */
    const char *cluster; /* the same */
    const char *layout;  /* exact canonical text */
    const char *user;    /* exact; NULL: any */
    const char *node;    /* one of the run's; NULL: any */
    const char *version; /* exact, of moefold; NULL: any */
    double since_unix_s; /* 0: any */
    int64_t world;       /* 0: any */
    size_t limit;        /* 0: all */
};

struct mfdb_samples {
    struct mfdb_sample *sample;
    size_t count;
};

/* One row a phase and direction of a run: medians over its iterations. */
struct mfdb_phase {
    char phase[32], direction[16];
    int64_t samples;
    double min_s, median_s, max_s; /* over ranks, medians over iterations */
    double bytes, flops, predicted_s;
};

struct mfdb_phases {
    struct mfdb_phase *phase;
    size_t count;
};

struct mfdb_value {
    char name[64];
    double value;
};

struct mfdb_coefficients {
    int64_t id;
    char name[64];     /* unique; made from the id when not given */
    double created_at; /* seconds since 1970, UTC */
    char scope[160];   /* what they hold for: cluster and device */
    double error_before, error_after;
    int64_t samples; /* runs that they were fitted to */
    struct mfdb_value *value;
    size_t values;
};

/* $MOEFOLD_DB, else moefold/history.db in the XDG data folder; malloc'd, or
 * NULL with ERR filled when neither that nor HOME is set.
 */
char *mfdb_default_path(char err[MFDB_ERROR_TEXT]);

/* The folder beside the database where runs leave their spools:
 * PATH with ".spool" put behind it; malloc'd.
 */
char *mfdb_spool_folder(const char *path);

/* Open PATH. A file that is not ours, is damaged, or has a newer schema is
 * refused by name and left untouched. MFDB_UPDATE also merges leftover spools
 * of runs that ended. Returns NULL with ERR filled.
 */
mfdb *mfdb_open(
    const char *path, enum mfdb_mode mode, char err[MFDB_ERROR_TEXT]);
void mfdb_close(mfdb *db);
/* What opening or merging had to leave as it was, such as a damaged spool;
 * NULL: nothing.
 */
const char *mfdb_warning(const mfdb *db);

/* A new random run id. */
int mfdb_uuid(char text[MFDB_UUID_TEXT]);

/* Begin a spool FOLDER/run_id.spool (FOLDER and its parents are made), held
 * under a lock while its process lives. NULL with ERR filled.
 */
mfdb_spool *mfdb_spool_create(
    const char *folder, const struct mfdb_run *run, char err[MFDB_ERROR_TEXT]);
const char *mfdb_spool_path(const mfdb_spool *spool);
/* Append whole records; 0, or -1 with ERR filled and none of them written.
 * Times and counts below 0 (but for -1, unknown) and infinities are refused.
 */
int mfdb_spool_append(mfdb_spool *spool, const struct mfdb_sample *sample,
    size_t count, char err[MFDB_ERROR_TEXT]);
/* The run's last record: all of RUN as it is at the end, its status done or
 * failed. Close the spool before merging it: its lock is held until then.
 */
int mfdb_spool_finish(
    mfdb_spool *spool, const struct mfdb_run *run, char err[MFDB_ERROR_TEXT]);
void mfdb_spool_close(mfdb_spool *spool);

/* Merge one spool in one transaction and remove it once it is committed. A
 * cut or damaged tail is left out; a spool without its last record whose
 * writer is gone becomes a run that is "lost". Refused while the writer lives;
 * 0 when another process has merged it meanwhile. -1 when it failed, -2 when
 * the file is not a spool that can be read; then it is left as it is.
 */
int mfdb_merge(mfdb *db, const char *spool, char err[MFDB_ERROR_TEXT]);

/* Queries; newest first. Results are freed with mfdb_runs_free and so on. */
int mfdb_list(mfdb *db, const struct mfdb_filter *filter,
    struct mfdb_runs *runs, char err[MFDB_ERROR_TEXT]);
/* Finished runs, most tokens a second first, one for each key (model, cluster,
 * layout, order, coupled, shape, ranks, backend, comm, experts kernel,
 * dispatcher, device): its median run, of an even number the faster of the
 * middle two.
 */
int mfdb_best(mfdb *db, const struct mfdb_filter *filter,
    struct mfdb_runs *runs, char err[MFDB_ERROR_TEXT]);
/* The run whose id starts with PREFIX; exactly one, else -1. */
int mfdb_find(mfdb *db, const char *prefix, struct mfdb_run *run,
    char err[MFDB_ERROR_TEXT]);
int mfdb_phases_of(mfdb *db, const char *run_id, struct mfdb_phases *phases,
    char err[MFDB_ERROR_TEXT]);
/* All samples of a run in the order in which it took them. */
int mfdb_samples_of(mfdb *db, const char *run_id, struct mfdb_samples *samples,
    char err[MFDB_ERROR_TEXT]);
/* Finished runs of the same key as RUN that began before it, newest first, at
 * most LIMIT.
 */
int mfdb_earlier(mfdb *db, const struct mfdb_run *run, size_t limit,
    struct mfdb_runs *runs, char err[MFDB_ERROR_TEXT]);
void mfdb_samples_free(struct mfdb_samples *samples);
void mfdb_runs_free(struct mfdb_runs *runs);
void mfdb_phases_free(struct mfdb_phases *phases);

/* Two runs, phase by phase, over their iterations. */
struct mfdb_difference {
    char phase[32], direction[16]; /* "layer" and "": their sum */
    int64_t a_n, b_n;              /* iterations */
    double a_s, b_s;               /* medians of the slowest rank's time */
    double p; /* that chance alone ranks them so: Mann and Whitney's U */
};

struct mfdb_differences {
    struct mfdb_difference *row;
    size_t count;
};

/* Runs A and B by their ids: the layer first, then each phase that either
 * has, NAN where one has none. The layer is what layer_s adds up: all phases
 * but gradient reductions and the optimizer.
 */
int mfdb_compare(mfdb *db, const char *a, const char *b,
    struct mfdb_differences *differences, char err[MFDB_ERROR_TEXT]);
void mfdb_differences_free(struct mfdb_differences *differences);
/* The probability, two-sided, that values of one distribution rank as A and B
 * do; exact for few values without ties, else by the normal approximation with
 * ties. NAN when either is empty. Sorts neither.
 * Source: H. B. Mann, D. R. Whitney, Ann. Math. Statist. 18 (1947) 50-60.
 */
double mfdb_rank_test(const double *a, size_t a_n, const double *b, size_t b_n);

/* A recent run beside earlier ones of the same key. */
struct mfdb_judged {
    struct mfdb_run run;
    int64_t earlier;   /* runs behind the expectation */
    double expected_s; /* their median layer_s */
    double noise_s;    /* 1.4826 times the median distance from it */
    bool slow;
    struct mfdb_difference *phase; /* of a slow one: A the earlier ones' median,
                                      B this run; most added time first */
    size_t phases;
};

struct mfdb_node {
    char name[256];
    int64_t runs, slow;               /* judged runs on it */
    double with_ratio, without_ratio; /* median measured over expected */
    double waited; /* part of the slow runs' waiting that was for its ranks:
                      the slowest rank's time less the median rank's; NAN when
                      ranks do not lie evenly on the nodes */
    bool sick;
};

struct mfdb_regress {
    struct mfdb_judged *judged;
    size_t count;
    struct mfdb_node *node; /* sick ones first, then by name */
    size_t nodes;
    int64_t unjudged; /* recent runs with too few earlier ones */
};

struct mfdb_regress_rule {
    struct mfdb_filter filter; /* of recent runs */
    int64_t least;             /* earlier runs to judge by */
    double threshold;          /* slow: above (1 + threshold) * expected */
};

/* Which of the runs that FILTER takes are slower than earlier ones of their
 * key: above the threshold and by more than three times the noise.
 */
int mfdb_regress_find(mfdb *db, const struct mfdb_regress_rule *rule,
    struct mfdb_regress *regress, char err[MFDB_ERROR_TEXT]);
void mfdb_regress_free(struct mfdb_regress *regress);

/* Runs that began before BEFORE_UNIX_S, but for the newest KEEP_LAST (at least
 * one) and the fastest of each key. Removed with their samples, and put into
 * RUNS; DRY_RUN: only that.
 */
struct mfdb_prune_rule {
    double before_unix_s;
    int64_t keep_last;
    bool dry_run;
};

int mfdb_prune(mfdb *db, const struct mfdb_prune_rule *rule,
    struct mfdb_runs *runs, char err[MFDB_ERROR_TEXT]);

typedef void mfdb_problem(void *arg, const char *text);

/* Look through all of the file. 0 all is well, 1 with each problem TOLD, -1 it
 * can't be looked through.
 */
int mfdb_check(
    mfdb *db, mfdb_problem *told, void *arg, char err[MFDB_ERROR_TEXT]);

/* One transaction around several calls; no other writer comes between. */
int mfdb_begin(mfdb *db, char err[MFDB_ERROR_TEXT]);
/* Commit when *RC is 0 (else roll back, keeping ERR); -1, and in *RC, when that
 * fails.
 */
int mfdb_end(mfdb *db, int *rc, char err[MFDB_ERROR_TEXT]);
/* Put RUN as merging a spool of it would; then its samples by their place
 * in it, where one that is there already stays.
 */
int mfdb_put_run(
    mfdb *db, const struct mfdb_run *run, char err[MFDB_ERROR_TEXT]);
int mfdb_put_sample(mfdb *db, const char *run_id, int64_t sequence,
    const struct mfdb_sample *sample, char err[MFDB_ERROR_TEXT]);

/* Coefficients are versioned rows. save sets id (and name when empty). */
int mfdb_coefficients_save(
    mfdb *db, struct mfdb_coefficients *set, char err[MFDB_ERROR_TEXT]);
/* By name or id; NULL: the newest for SCOPE. Found 1, not found 0, -1. */
int mfdb_coefficients_load(mfdb *db, const char *name, const char *scope,
    struct mfdb_coefficients *set, char err[MFDB_ERROR_TEXT]);
int mfdb_coefficients_list(mfdb *db, struct mfdb_coefficients **sets,
    size_t *count, char err[MFDB_ERROR_TEXT]);
void mfdb_coefficients_free(struct mfdb_coefficients *set);

/* Measured figures of a machine, kept with their time. get: found 1, not
 * found or older than MAX_AGE_S 0, -1.
 */
int mfdb_cache_get(mfdb *db, const char *key, double max_age_s, double *value,
    char err[MFDB_ERROR_TEXT]);
int mfdb_cache_put(
    mfdb *db, const char *key, double value, char err[MFDB_ERROR_TEXT]);

#endif
