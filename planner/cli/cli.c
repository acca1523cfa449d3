/* SPDX-License-Identifier: BSD-3-Clause
 * Parsing a command line against a command's tables, and its getters.
 */
#include "config.h"

#include "planner/cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/cli/help.h"
#include "planner/layout/number.h"
#include "planner/layout/streams.h"

struct given {
    const struct mf_option *option;
    const char *value;
};

struct mf_cli {
    const struct mf_command *command;
    struct given *given;
    char **operand; /* NULL-terminated */
    char *line;
    int givens, operands;
    bool json, help, version;
};

static const struct mf_option universal[] = {
    {"json", NULL, "print one JSON document"},
    {"help", NULL, "show this help"},
    {"version", NULL, "show the version"},
    {NULL, NULL, NULL},
};

static const struct mf_option *table_find(
    const struct mf_option *table, const char *name, size_t length)
{
    for (; table->name; table++)
        if (strlen(table->name) == length && !memcmp(table->name, name, length))
            return table;
    return NULL;
}

static const struct mf_option *command_find(
    const struct mf_command *command, const char *name, size_t length)
{
    const struct mf_option *found = table_find(universal, name, length);

    for (int i = 0; !found && command->tables && command->tables[i]; i++)
        found = table_find(command->tables[i], name, length);
    return found;
}

/* One argument that begins with "--"; returns how many were used, or -1. */
static int cli_parse_option(
    struct mf_cli *cli, char **argv, struct mf_error *err)
{
    const char *name = argv[0] + 2;
    size_t length = strcspn(name, "=");
    const struct mf_option *option = command_find(cli->command, name, length);
    const char *value = NULL;
    int used = 1;

    if (!option)
        return mf_error_set(err, MF_INVALID,
            "unknown option '--%.*s'; see moefold %s --help",
            (int)(length < 64 ? length : 64), name, cli->command->name);
    if (!option->value && name[length])
        return mf_error_set(
            err, MF_INVALID, "--%s takes no value", option->name);
    if (option->value) {
        value = name[length] ? name + length + 1 : argv[used++];
        if (!value)
            return mf_error_set(err, MF_INVALID, "--%s needs a value (%s)",
                option->name, option->value);
    }
    cli->given[cli->givens++] = (struct given){option, value};
    cli->json |= option == &universal[0];
    cli->help |= option == &universal[1];
    cli->version |= option == &universal[2];
    return used;
}

static int cli_check_operands(const struct mf_cli *cli, struct mf_error *err)
{
    const struct mf_command *command = cli->command;

    if (cli->operands < command->least)
        return mf_error_set(err, MF_INVALID, "needs %s; see moefold %s --help",
            command->operands, command->name);
    if (command->most >= 0 && cli->operands > command->most)
        return mf_error_set(err, MF_INVALID,
            "'%.64s' is one argument too many; see moefold %s --help",
            cli->operand[command->most], command->name);
    return 0;
}

static int cli_parse(
    struct mf_cli *cli, int argc, char **argv, struct mf_error *err)
{
    bool options = true;

    for (int i = 0; i < argc;) {
        if (options && !strcmp(argv[i], "--")) {
            options = false;
            i++;
        } else if (options && !strncmp(argv[i], "--", 2)) {
            int used = cli_parse_option(cli, argv + i, err);

            if (used < 0)
                return -1;
            i += used;
        } else if (options && argv[i][0] == '-' && argv[i][1]) {
            return mf_error_set(err, MF_INVALID,
                "unknown option '%.64s'; options are written --name", argv[i]);
        } else {
            cli->operand[cli->operands++] = argv[i++];
        }
    }
    return cli->help || cli->version ? 0 : cli_check_operands(cli, err);
}

static char *join_line(int argc, char **argv)
{
    size_t size = sizeof "moefold";
    char *line, *at;

    for (int i = 0; i < argc; i++)
        size += strlen(argv[i]) + 1;
    line = malloc(size);
    if (!line)
        return NULL;
    at = stpcpy(line, "moefold");
    for (int i = 0; i < argc; i++) {
        *at++ = ' ';
        at = stpcpy(at, argv[i]);
    }
    return line;
}

const char *mf_cli_value_at(const struct mf_cli *cli, const char *name, int i)
{
    for (int k = 0; k < cli->givens; k++)
        if (!strcmp(cli->given[k].option->name, name) && i-- == 0)
            return cli->given[k].value ? cli->given[k].value : "";
    return NULL;
}

const char *mf_cli_value(const struct mf_cli *cli, const char *name)
{
    const char *value = NULL, *next;

    for (int i = 0; (next = mf_cli_value_at(cli, name, i)); i++)
        value = next;
    return value;
}

bool mf_cli_has(const struct mf_cli *cli, const char *name)
{
    return mf_cli_value(cli, name) != NULL;
}

int mf_cli_integer(const struct mf_cli *cli, const char *name, int64_t least,
    int64_t most, int64_t *value, struct mf_error *err)
{
    const char *text = mf_cli_value(cli, name);
    char what[64];

    if (!text)
        return 0;
    snprintf(what, sizeof what, "--%s", name);
    return mf_number_parse(text, what, least, most, value, err);
}

int mf_cli_decimal(const struct mf_cli *cli, const char *name, double least,
    double most, double *value, struct mf_error *err)
{
    const char *text = mf_cli_value(cli, name);
    char what[64];

    if (!text)
        return 0;
    snprintf(what, sizeof what, "--%s", name);
    return mf_decimal_parse(text, what, least, most, value, err);
}

int mf_cli_operands(const struct mf_cli *cli)
{
    return cli->operands;
}

const char *mf_cli_operand(const struct mf_cli *cli, int i)
{
    return i < cli->operands ? cli->operand[i] : NULL;
}

char *const *mf_cli_operand_vector(const struct mf_cli *cli)
{
    return cli->operand;
}

bool mf_cli_json(const struct mf_cli *cli)
{
    return cli->json;
}

const char *mf_cli_line(const struct mf_cli *cli)
{
    return cli->line;
}

int mf_cli_print_json(json_t *json, struct mf_error *err)
{
    int bad;

    if (!json)
        return mf_error_set(err, MF_FAILED,
            "no JSON: a name is not UTF-8, or there is no memory");
    bad = json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) ||
          putchar('\n') == EOF || fflush(stdout);
    json_decref(json);
    return bad ? mf_error_set(err, MF_FAILED, "cannot print the JSON") : 0;
}

static const struct mf_command *commands_find(
    const struct mf_command *const *commands, const char *name)
{
    for (; *commands; commands++)
        if (!strcmp((*commands)->name, name))
            return *commands;
    return NULL;
}

/* A command that ended with "no" before it had a document of its own. */
static int cli_print_no(struct mf_error *err)
{
    json_t *json = json_pack("{s:s, s:s}", "answer", "no", "reason", err->text);

    return mf_cli_print_json(json, err) ? MF_FAILED : MF_NO;
}

/* Standard output is checked at the end, so that a full disk is not silent. */
static int cli_finish(
    const struct mf_cli *cli, int status, struct mf_error *err)
{
    if (mf_streams_flush() && status != MF_FAILED) {
        status = MF_FAILED;
        mf_error_set(err, MF_FAILED, "cannot write standard output");
    }
    if (err->text[0])
        fprintf(stderr, "moefold: %s: %s\n", cli->command->name, err->text);
    return status;
}

static int cli_run(struct mf_cli *cli, int argc, char **argv)
{
    struct mf_error err = {.status = MF_OK};
    int status;

    cli->given = calloc((size_t)argc + 1, sizeof *cli->given);
    cli->operand = calloc((size_t)argc + 1, sizeof *cli->operand);
    cli->line = join_line(argc + 1, argv - 1);
    if (!cli->given || !cli->operand || !cli->line) {
        mf_error_set(&err, MF_FAILED, "no memory");
        return cli_finish(cli, MF_FAILED, &err);
    }
    if (cli_parse(cli, argc, argv, &err))
        return cli_finish(cli, MF_INVALID, &err);
    if (cli->help)
        mf_help_command(cli->command, universal);
    else if (cli->version)
        mf_help_version();
    status = cli->help || cli->version ? 0 : cli->command->run(cli, &err);
    if (status < 0)
        status = err.status == MF_NO && cli->json ? cli_print_no(&err)
                                                  : (int)err.status;
    return cli_finish(cli, status, &err);
}

static int main_finish(void)
{
    if (!mf_streams_flush())
        return MF_OK;
    fputs("moefold: cannot write standard output\n", stderr);
    return MF_FAILED;
}

int mf_cli_main(int argc, char **argv, const struct mf_command *const *commands)
{
    struct mf_cli cli = {0};
    int status;

    if (mf_streams_open() < 0)
        return MF_FAILED;
    if (argc < 2) {
        fputs("moefold: no command; moefold --help lists them\n", stderr);
        return MF_INVALID;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help")) {
        mf_help_program(commands);
        return main_finish();
    }
    if (!strcmp(argv[1], "--version")) {
        mf_help_version();
        return main_finish();
    }
    cli.command = commands_find(commands, argv[1]);
    if (!cli.command) {
        fprintf(stderr,
            "moefold: unknown command '%.64s'; "
            "moefold --help lists them\n",
            argv[1]);
        return MF_INVALID;
    }
    status = cli_run(&cli, argc - 2, argv + 2);
    free(cli.given);
    free(cli.operand);
    free(cli.line);
    return status;
}
