/* SPDX-License-Identifier: BSD-3-Clause
 * libFuzzer target: a model's file in any of its forms. A model that is read
 * must have a JSON that reads itself back.
 */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "planner/model_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_back(const struct mf_model *model)
{
    json_t *json = mf_model_to_json(model);
    struct mf_error err = {0};
    struct mf_model again;

    if (!json || mf_model_from_json(json, &again, &err))
        abort();
    if (again.params.total != model->params.total)
        abort();
    mf_model_free(&again);
    json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mf_error err = {0};
    struct mf_arguments arguments;
    struct mf_model model;
    char *text = malloc(size + 1);

    if (!text)
        return 0;
    memcpy(text, data, size);
    if (!mf_model_read_text(
            "fuzz/model", text, size, &model, &arguments, &err)) {
        read_back(&model);
        mf_model_free(&model);
    } else if (!err.text[0] || strchr(err.text, '\n')) {
        abort();
    }
    free(text);
    return 0;
}
