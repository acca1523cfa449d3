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

#define MFDB_SCHEMA 1
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

struct mfdb_runs {
    struct mfdb_run *run;
    size_t count;
};

struct mfdb_filter {
    const char *model;   /* prefix, whatever its case; NULL: any */
    const char *cluster; /* the same */
    const char *layout;  /* exact canonical text */
    int64_t world;       /* 0: any */
    size_t limit;        /* 0: all */
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
 * dispatcher): its median run, of an even number the faster of the middle two.
 */
int mfdb_best(mfdb *db, const struct mfdb_filter *filter,
    struct mfdb_runs *runs, char err[MFDB_ERROR_TEXT]);
/* The run whose id starts with PREFIX; exactly one, else -1. */
int mfdb_find(mfdb *db, const char *prefix, struct mfdb_run *run,
    char err[MFDB_ERROR_TEXT]);
int mfdb_phases_of(mfdb *db, const char *run_id, struct mfdb_phases *phases,
    char err[MFDB_ERROR_TEXT]);
void mfdb_runs_free(struct mfdb_runs *runs);
void mfdb_phases_free(struct mfdb_phases *phases);

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
