/* SPDX-License-Identifier: BSD-3-Clause
 * moefold history compare and regress.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "planner/cli/database.h"
#include "planner/cli/history.h"
#include "planner/cli/history_verbs.h"

/* A difference is real when chance makes it less often than this, and it is
 * worth a word when it is larger than what two runs of one thing differ by.
 */
#define SURE_P 0.01
#define WORTH 0.02

static const char *verdict(const struct mfdb_difference *d)
{
    if (!(d->a_s > 0) || !(d->b_s > 0))
        return d->a_n == d->b_n ? "unknown" : d->a_n ? "only a" : "only b";
    if (!(d->p < SURE_P) || fabs(d->b_s / d->a_s - 1) < WORTH)
        return "same";
    return d->b_s > d->a_s ? "slower" : "faster";
}

static json_t *difference_json(const struct mfdb_difference *d)
{
    return json_pack("{s:o, s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:b, s:s}",
        "phase", mf_history_text(d->phase), "direction",
        mf_history_text(d->direction), "a_samples", (json_int_t)d->a_n,
        "b_samples", (json_int_t)d->b_n, "a_s", mf_history_real(d->a_s), "b_s",
        mf_history_real(d->b_s), "ratio", mf_history_real(d->b_s / d->a_s), "p",
        mf_history_real(d->p), "significant", d->p < SURE_P, "verdict",
        verdict(d));
}

static json_t *differences_json(const struct mfdb_difference *row, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, difference_json(&row[i]));
    return list;
}

static const char *chance(double p, char cell[MF_HISTORY_CELL])
{
    if (isnan(p))
        snprintf(cell, MF_HISTORY_CELL, "%8s", "-");
    else if (p < 1e-4)
        snprintf(cell, MF_HISTORY_CELL, "%8s", "<0.0001");
    else
        snprintf(cell, MF_HISTORY_CELL, "%8.4f", p);
    return cell;
}

static void differences_table(const struct mfdb_differences *all)
{
    char a[MF_HISTORY_CELL], b[MF_HISTORY_CELL], c[MF_HISTORY_CELL];
    char d[MF_HISTORY_CELL], e[MF_HISTORY_CELL], f[MF_HISTORY_CELL];

    printf("%-18s  %-9s  %9s  %9s  %9s  %8s\n", "phase", "direction", "a ms",
        "b ms", "b to a", "p");
    for (size_t i = 0; i < all->count; i++) {
        const struct mfdb_difference *row = &all->row[i];

        printf("%-18s  %-9s  %s  %s  %s  %s  %s\n",
            mf_history_plain(row->phase, a),
            mf_history_plain(row->direction, b),
            mf_history_figure(9, 3, row->a_s * 1e3, c),
            mf_history_figure(9, 3, row->b_s * 1e3, d),
            mf_history_percent(row->b_s / row->a_s - 1, e), chance(row->p, f),
            verdict(row));
    }
    printf("\nmedians over iterations of the slowest rank; p: how often chance "
           "alone\nranks two such runs so (Mann-Whitney). It speaks of these "
           "two runs: another\nday or other nodes move a run by more than its "
           "iterations differ.\n");
}

static int compare_print(const struct mf_cli *cli, const struct mfdb_run run[2],
    const struct mfdb_differences *all, struct mf_error *err)
{
    if (mf_cli_json(cli))
        return mf_cli_print_json(
            json_pack("{s:[o, o], s:o, s:o}", "runs",
                mf_history_run_json(&run[0]), mf_history_run_json(&run[1]),
                "layer", difference_json(&all->row[0]), "phases",
                differences_json(all->row + 1, all->count - 1)),
            err);
    for (int i = 0; i < 2; i++) {
        char a[MF_HISTORY_CELL], b[MF_HISTORY_CELL];

        printf("%c  %.8s  %s  %s\n", 'a' + i, run[i].run_id,
            mf_history_plain(run[i].model, a),
            mf_history_plain(run[i].layout, b));
    }
    putchar('\n');
    differences_table(all);
    return 0;
}

static int compare_find(const struct mf_cli *cli, mfdb *db,
    struct mfdb_run run[2], struct mfdb_differences *all, struct mf_error *err)
{
    char text[MFDB_ERROR_TEXT];

    for (int i = 0; i < 2; i++)
        if (mfdb_find(db, mf_cli_operand(cli, 1 + i), &run[i], text))
            return mf_error_set(err, MF_INVALID, "%s", text);
    if (mfdb_compare(db, run[0].run_id, run[1].run_id, all, text))
        return mf_error_set(err, MF_FAILED, "%s", text);
    return 0;
}

int mf_history_compare(const struct mf_cli *cli, struct mf_error *err)
{
    struct mfdb_differences all = {0};
    struct mfdb_run run[2];
    mfdb *db;
    int rc;

    if (mf_cli_operands(cli) != 3)
        return mf_error_set(
            err, MF_INVALID, "compare wants two runs; history list shows them");
    if (mf_history_open(cli, &db, err))
        return -1;
    rc = compare_find(cli, db, run, &all, err);
    if (rc == 0)
        rc = compare_print(cli, run, &all, err);
    mfdb_differences_free(&all);
    mfdb_close(db);
    return rc;
}

/* ---- regress ---- */

static json_t *judged_json(const struct mfdb_judged *j)
{
    json_t *json = mf_history_run_json(&j->run);

    json_object_set_new(
        json, "expected_ms", mf_history_real(j->expected_s * 1e3));
    json_object_set_new(json, "noise_ms", mf_history_real(j->noise_s * 1e3));
    json_object_set_new(
        json, "ratio", mf_history_real(j->run.layer_s / j->expected_s));
    json_object_set_new(json, "earlier_runs", json_integer(j->earlier));
    json_object_set_new(json, "phases", differences_json(j->phase, j->phases));
    return json;
}

static json_t *node_json(const struct mfdb_node *node)
{
    return json_pack("{s:o, s:I, s:I, s:o, s:o, s:o, s:b}", "node",
        mf_history_text(node->name), "runs", (json_int_t)node->runs, "slow",
        (json_int_t)node->slow, "ratio", mf_history_real(node->with_ratio),
        "ratio_without", mf_history_real(node->without_ratio), "waited_for",
        mf_history_real(node->waited), "sick", node->sick);
}

static json_t *regress_json(const struct mfdb_regress *r)
{
    json_t *runs = json_array(), *nodes = json_array();

    for (size_t i = 0; i < r->count; i++)
        if (r->judged[i].slow)
            json_array_append_new(runs, judged_json(&r->judged[i]));
    for (size_t i = 0; i < r->nodes; i++)
        json_array_append_new(nodes, node_json(&r->node[i]));
    return json_pack("{s:o, s:o, s:I, s:I}", "runs", runs, "nodes", nodes,
        "judged", (json_int_t)r->count, "unjudged", (json_int_t)r->unjudged);
}

/* The phases that added most, until nine tenths of all that was added. */
static void slow_phases(const struct mfdb_judged *j)
{
    double all = 0, told = 0;
    char a[MF_HISTORY_CELL];

    for (size_t i = 0; i < j->phases; i++)
        all += fmax(0, j->phase[i].b_s - j->phase[i].a_s);
    for (size_t i = 0; i < j->phases && told < 0.9 * all; i++) {
        const struct mfdb_difference *d = &j->phase[i];
        const double added = d->b_s - d->a_s;

        if (!(added > 0))
            break;
        told += added;
        printf("          %s %s: %.3f ms, was %.3f\n",
            mf_history_plain(d->phase, a), d->direction, d->b_s * 1e3,
            d->a_s * 1e3);
    }
}

static void regress_table(const struct mfdb_regress *r)
{
    char a[MF_HISTORY_CELL], b[MF_HISTORY_CELL];
    size_t slow = 0;

    for (size_t i = 0; i < r->count; i++) {
        const struct mfdb_judged *j = &r->judged[i];

        if (!j->slow)
            continue;
        slow++;
        printf("%.8s  %s  %s  %.3f ms, %.2f times %.3f of %" PRId64
               " earlier\n",
            j->run.run_id, mf_history_plain(j->run.model, a),
            mf_history_plain(j->run.layout, b), j->run.layer_s * 1e3,
            j->run.layer_s / j->expected_s, j->expected_s * 1e3, j->earlier);
        slow_phases(j);
    }
    for (size_t i = 0; i < r->nodes && r->node[i].sick; i++) {
        printf("%snode %s: %" PRId64 " of its %" PRId64 " runs slow",
            i == 0 && slow ? "\n" : "", mf_history_plain(r->node[i].name, a),
            r->node[i].slow, r->node[i].runs);
        if (isfinite(r->node[i].waited))
            printf("; %.0f%% of the waiting was for its ranks",
                100 * r->node[i].waited);
        putchar('\n');
    }
    printf("%s%zu of %zu runs slower than earlier ones of their kind",
        slow ? "\n" : "", slow, r->count);
    if (r->unjudged)
        printf("; %" PRId64 " more have too few to judge by", r->unjudged);
    putchar('\n');
}

int mf_history_regress(const struct mf_cli *cli, struct mf_error *err)
{
    struct mfdb_regress_rule rule = {.least = 3, .threshold = 0.05};
    char layout[MF_LAYOUT_TEXT], text[MFDB_ERROR_TEXT];
    struct mfdb_regress r;
    mfdb *db;
    int rc = 0;

    if (mf_history_filter(cli, &rule.filter, layout, err) ||
        mf_cli_decimal(cli, "threshold", 0, 100, &rule.threshold, err) ||
        mf_history_open(cli, &db, err))
        return -1;
    if (mfdb_regress_find(db, &rule, &r, text))
        rc = mf_error_set(err, MF_FAILED, "%s", text);
    mfdb_close(db);
    if (rc)
        return -1;
    if (mf_cli_json(cli))
        rc = mf_cli_print_json(regress_json(&r), err);
    else
        regress_table(&r);
    mfdb_regress_free(&r);
    return rc;
}
