/* SPDX-License-Identifier: BSD-3-Clause
 * The front end's commands and their options, as tables: parsing, --help and
 * the test that holds man pages to them read the same rows.
 */
#ifndef MF_CLI_H
#define MF_CLI_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "planner/layout/error.h"

struct mf_option {
    const char *name;  /* without the dashes */
    const char *value; /* what stands for the value in --help; NULL: a flag */
    const char *help;  /* NULL: of a family that another row explains */
};

struct mf_cli;

struct mf_command {
    const char *name;
    const char *operands; /* for --help, such as "FILE" or "PLAN" */
    const char *summary;
    const struct mf_option *const *tables; /* NULL-terminated list of tables,
                                  each ended by a row without a name */
    int least, most; /* operands; most -1: any number. "--" ends options */
    /* The exit status, or -1 for that of ERR; ERR is printed by main when it is
     * filled. MF_NO: the command has printed its document; -1 with MF_NO in
     * ERR: it has not, and --json prints the reason instead.
     */
    int (*run)(struct mf_cli *cli, struct mf_error *err);
};

/* Tables shared by commands. --json, --help and --version are everywhere. */
extern const struct mf_option mf_options_model[];    /* --model */
extern const struct mf_option mf_options_cluster[];  /* --cluster, timeout */
extern const struct mf_option mf_options_layout[];   /* --layout, --order */
extern const struct mf_option mf_options_settings[]; /* --seq and so on */
extern const struct mf_option mf_options_db[];       /* --db, --coefficients */

/* The value given for NAME, the last one if repeated; NULL: not given. */
const char *mf_cli_value(const struct mf_cli *cli, const char *name);
/* The Ith value given for NAME; NULL: no more. */
const char *mf_cli_value_at(const struct mf_cli *cli, const char *name, int i);
bool mf_cli_has(const struct mf_cli *cli, const char *name);
/* *VALUE is left alone when the option is not given. */
int mf_cli_integer(const struct mf_cli *cli, const char *name, int64_t least,
    int64_t most, int64_t *value, struct mf_error *err);
int mf_cli_decimal(const struct mf_cli *cli, const char *name, double least,
    double most, double *value, struct mf_error *err);
int mf_cli_operands(const struct mf_cli *cli);
const char *mf_cli_operand(const struct mf_cli *cli, int i);
/* The operands as a NULL-terminated vector. */
char *const *mf_cli_operand_vector(const struct mf_cli *cli);
bool mf_cli_json(const struct mf_cli *cli);
/* The whole command line, for records; "moefold plan --model …". */
const char *mf_cli_line(const struct mf_cli *cli);

/* Print JSON (reference taken over) and a newline on standard output. */
int mf_cli_print_json(json_t *json, struct mf_error *err);

/* The program: parse, run, print the error; returns the exit status. */
int mf_cli_main(
    int argc, char **argv, const struct mf_command *const *commands);

#endif
