/* SPDX-License-Identifier: BSD-3-Clause
 * YAML into arguments: scalars of a mapping, and of files that it extends.
 */
#include "config.h"

#include "planner/model_read_megatron.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_YAML

#include <yaml.h>

#define DEPTH_MAX 8
#define KEYS_MAX 20000
#define EXTENDS_MAX 16

/* A reading: the scalars of every mapping, a leaf's name alone. ARGS holds
 * those of the mapping MODEL_ARGS, when there is one.
 */
struct yaml {
    yaml_parser_t parser;
    json_t *all, *args, *extends;
    struct mf_error *err;
    int keys;
};

static int yaml_refuse(struct yaml *y, const char *what)
{
    const char *why = what ? what : y->parser.problem;

    return mf_error_set(y->err, MF_INVALID, "line %zu: %s",
        (what ? y->parser.mark.line : y->parser.problem_mark.line) + 1,
        why ? why : "not YAML");
}

/* The name of an argument: no dashes before it, dashes inside. */
static int yaml_name(struct yaml *y, const yaml_event_t *event, char name[128])
{
    const char *text = (const char *)event->data.scalar.value;
    size_t n;

    while (*text == '-')
        text++;
    n = strlen(text);
    if (!n || n >= 128)
        return yaml_refuse(y, "a key of no or too many letters");
    for (size_t i = 0; i <= n; i++)
        name[i] = text[i] == '_' ? '-' : text[i];
    return 0;
}

static int yaml_put(
    struct yaml *y, const char *name, const char *value, bool args)
{
    if (++y->keys > KEYS_MAX)
        return yaml_refuse(y, "too many keys");
    if (json_object_set_new(y->all, name, json_string(value)) ||
        (args && json_object_set_new(y->args, name, json_string(value))))
        return yaml_refuse(y, "a value is not UTF-8");
    return 0;
}

static int yaml_value(struct yaml *y, const char *name, int depth, bool args);

/* A list: only the names of files to extend are of use. */
static int yaml_list(struct yaml *y, const char *name, int depth)
{
    yaml_event_t event;
    int status = 0;

    for (;;) {
        yaml_event_type_t type;

        if (!yaml_parser_parse(&y->parser, &event))
            return yaml_refuse(y, NULL);
        type = event.type;
        if (type == YAML_SCALAR_EVENT && !strcmp(name, "extends") && depth == 1)
            status = json_array_append_new(
                y->extends, json_string((char *)event.data.scalar.value));
        yaml_event_delete(&event);
        if (status)
            return yaml_refuse(y, "a name is not UTF-8");
        if (type == YAML_SEQUENCE_END_EVENT)
            return 0;
        if (type == YAML_SCALAR_EVENT)
            continue;
        if (type != YAML_MAPPING_START_EVENT &&
            type != YAML_SEQUENCE_START_EVENT)
            return yaml_refuse(y, "only plain values are read, no aliases");
        if (depth >= DEPTH_MAX)
            return yaml_refuse(y, "nested too deeply");
        /* Walked over: what it holds belongs to no argument. */
        for (int open = 1; open > 0;) {
            if (!yaml_parser_parse(&y->parser, &event))
                return yaml_refuse(y, NULL);
            open += event.type == YAML_MAPPING_START_EVENT ||
                    event.type == YAML_SEQUENCE_START_EVENT;
            open -= event.type == YAML_MAPPING_END_EVENT ||
                    event.type == YAML_SEQUENCE_END_EVENT;
            yaml_event_delete(&event);
        }
    }
}

static int yaml_mapping(struct yaml *y, int depth, bool args)
{
    char name[128];
    yaml_event_t event;
    int status;

    if (depth >= DEPTH_MAX)
        return yaml_refuse(y, "nested too deeply");
    for (;;) {
        if (!yaml_parser_parse(&y->parser, &event))
            return yaml_refuse(y, NULL);
        if (event.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&event);
            return 0;
        }
        status = event.type == YAML_SCALAR_EVENT
                     ? yaml_name(y, &event, name)
                     : yaml_refuse(y, "a key is no word");
        yaml_event_delete(&event);
        if (status || yaml_value(y, name, depth, args))
            return -1;
    }
}

static int yaml_value(struct yaml *y, const char *name, int depth, bool args)
{
    bool mine = args || !strcmp(name, "MODEL-ARGS");
    yaml_event_t event;
    int status;

    if (!yaml_parser_parse(&y->parser, &event))
        return yaml_refuse(y, NULL);
    switch (event.type) {
    case YAML_SCALAR_EVENT:
        status = yaml_put(y, name, (const char *)event.data.scalar.value, args);
        break;
    case YAML_MAPPING_START_EVENT:
        if (mine && !y->args)
            y->args = json_object();
        status = mine && !y->args
                     ? mf_error_set(y->err, MF_FAILED, "out of memory")
                     : yaml_mapping(y, depth + 1, mine);
        break;
    case YAML_SEQUENCE_START_EVENT:
        status = yaml_list(y, name, depth);
        break;
    default:
        status = yaml_refuse(y, "only plain values are read, no aliases");
    }
    yaml_event_delete(&event);
    return status;
}

/* The one document of TEXT, which must be a mapping. */
static int yaml_document(struct yaml *y)
{
    yaml_event_t event;
    bool found = false;

    while (!found) {
        yaml_event_type_t type;

        if (!yaml_parser_parse(&y->parser, &event))
            return yaml_refuse(y, NULL);
        type = event.type;
        yaml_event_delete(&event);
        if (type == YAML_STREAM_END_EVENT)
            return 0; /* nothing but comments */
        if (type == YAML_STREAM_START_EVENT ||
            type == YAML_DOCUMENT_START_EVENT)
            continue;
        if (type != YAML_MAPPING_START_EVENT)
            return yaml_refuse(y, "it holds no keys");
        found = true;
    }
    return yaml_mapping(y, 1, false);
}

static json_t *yaml_load(const char *file, const char *text, size_t size,
    int level, struct mf_error *err);

/* What NAME, a file beside FILE, says. */
static json_t *yaml_beside(
    const char *file, const char *name, int level, struct mf_error *err)
{
    const char *slash = strrchr(file, '/');
    int before = slash ? (int)(slash - file) + 1 : 0;
    char path[4096], *text = NULL;
    json_t *object = NULL;
    size_t size;

    if (strchr(name, '/') || snprintf(path, sizeof path, "%.*s%s", before, file,
                                 name) >= (int)sizeof path) {
        mf_error_set(err, MF_INVALID,
            "extends names %.64s; only files beside this one are read", name);
        return NULL;
    }
    if (!mf_file_load(path, &text, &size, err))
        object = yaml_load(path, text, size, level + 1, err);
    if (!object)
        mf_error_prefix(err, "extends %.64s", name);
    free(text);
    return object;
}

/* Those that a file extends come first, its own values over them. */
static json_t *yaml_join(
    const char *file, struct yaml *y, json_t *own, int level)
{
    json_t *object = json_object(), *item;
    size_t i;

    if (level >= EXTENDS_MAX) {
        mf_error_set(y->err, MF_INVALID, "extends goes round in a circle");
        goto fail;
    }
    json_array_foreach(y->extends, i, item)
    {
        json_t *base =
            yaml_beside(file, json_string_value(item), level, y->err);
        int bad = !base || json_object_update(object, base);

        json_decref(base);
        if (bad)
            goto fail;
    }
    if (!object || json_object_update(object, own)) {
        mf_error_set(y->err, MF_FAILED, "out of memory");
        goto fail;
    }
    return object;
fail:
    json_decref(object);
    return NULL;
}

static json_t *yaml_load(const char *file, const char *text, size_t size,
    int level, struct mf_error *err)
{
    struct yaml y = {.all = json_object(), .extends = json_array(), .err = err};
    json_t *object = NULL;

    if (!y.all || !y.extends || !yaml_parser_initialize(&y.parser)) {
        mf_error_set(err, MF_FAILED, "out of memory");
        goto out;
    }
    yaml_parser_set_input_string(&y.parser, (const unsigned char *)text, size);
    if (!yaml_document(&y))
        object = yaml_join(file, &y, y.args ? y.args : y.all, level);
    yaml_parser_delete(&y.parser);
out:
    json_decref(y.all);
    json_decref(y.args);
    json_decref(y.extends);
    return object;
}

json_t *mf_yaml_read(
    const char *file, const char *text, size_t size, struct mf_error *err)
{
    return yaml_load(file, text, size, 0, err);
}

#else

json_t *mf_yaml_read(
    const char *file, const char *text, size_t size, struct mf_error *err)
{
    (void)file;
    (void)text;
    (void)size;
    mf_error_set(err, MF_INVALID,
        "this looks like YAML, which this moefold was built without "
        "(libyaml)");
    return NULL;
}

#endif
