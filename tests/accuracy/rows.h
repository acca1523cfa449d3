/* SPDX-License-Identifier: BSD-3-Clause
 * Published runs as the planner's inputs: each row of runs.csv with the model,
 * cluster, layout and settings that it states, and what it leaves out filled.
 */
#ifndef MF_ACCURACY_ROWS_H
#define MF_ACCURACY_ROWS_H

#include "planner/cost.h"
#include "planner/published.h"
#include "tests/accuracy/table.h"

enum row_status { ROW_OK, ROW_OOM, ROW_LEFT_OUT };

struct row {
    size_t line; /* of the table, for messages */
    const char *source, *model_name, *gpu, *notes;
    const char *why; /* left out */
    enum row_status status;
    bool complete, efa, filled;
    struct mf_model *model; /* of the bed */
    struct mf_cluster cluster;
    struct mf_plan_entry asked; /* layout and settings as asked, auto in it */
    double step_s;              /* measured */
    struct mf_published_run run;
    int family, device, group; /* numbers of equal models, GPUs, settings */
};

struct model_entry {
    char name[128];
    struct mf_model model;
};

struct rows {
    struct table runs, models;
    struct model_entry model[64];
    int models_read;
    const char *folder;
    struct row *row;
    size_t count;
};

/* FILE is runs.csv or feasible.csv in FOLDER, with models.csv beside it. */
void rows_read(struct rows *rows, const char *folder, const char *file);
void rows_free(struct rows *rows);

#endif
