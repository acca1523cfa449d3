/* SPDX-License-Identifier: BSD-3-Clause
 * What the tests of models share.
 */
#include "tests/unit/model/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

const char *const support_models[] = {
    "Mixtral-8x22B-v0.1/config.json",
    "small-moe/config.json",
    "Arctic-instruct.json",
    "DeepSeek-V2-Lite.json",
    "DeepSeek-V3-simai-renamed-keys.json",
    "DeepSeek-V3.2.json",
    "DeepSeek-V3.json",
    "DeepSeek-V4-Pro.json",
    "DeepseekV3-16B-moonlight-shape.json",
    "ERNIE-4.5-21B-A3B-PT.json",
    "GLM-4.5.json",
    "GigaChat-20B-A3B.json",
    "Hunyuan-A13B.json",
    "Jamba-v0.1.json",
    "JetMoE-8B.json",
    "Kimi-K2-Instruct.json",
    "Kimi-K3.json",
    "Ling-lite-base.json",
    "Ling-mini-2.0.json",
    "Ling-plus-chat.json",
    "Llama-4-Scout-17B-16E-Instruct.json",
    "MiMo-V2-Flash.json",
    "MiniMax-M2.5.json",
    "MiniMax-Text-01.json",
    "Mixtral-8x7B-v0.1.json",
    "Nemotron-3-Nano-30B-A3B.json",
    "OLMoE-1B-7B-0924.json",
    "OpenMoE-8B.json",
    "Phi-3.5-MoE-instruct.json",
    "Qwen1.5-MoE-A2.7B.json",
    "Qwen2-57B-A14B.json",
    "Qwen3-235B-A22B-FP8-simai.json",
    "Qwen3-235B-A22B.json",
    "Qwen3-30B-A3B.json",
    "Qwen3-Next-80B-A3B.json",
    "Qwen3-VL-30B-A3B-Instruct.json",
    "Qwen3.5-35B-A3B.json",
    "Yuan2-M32.json",
    "aicb-deepseek-default.json",
    "dbrx-instruct.json",
    "deepseek-native-671B.json",
    "dense-Llama-3-8B.json",
    "dense-Llama-3_3-Nemotron-Super-49B-v1.json",
    "dense-Qwen2.5-7B.json",
    "dense-Qwen3-32B.json",
    "dense-chatglm3-6b.json",
    "gemma-4-26B-A4B.json",
    "gpt-oss-20b.json",
    "granite-3.0-3b-a800m-instruct.json",
    "mixtral-7b-8expert-discoresearch.json",
    NULL,
};

const char *const support_arguments[] = {
    "megatron/megatron-lm-mixtral_8x7b_tp1pp4ep8vpp8_release.yaml",
    "megatron/modelzoo-DeepSeek-V3-Proxy.yaml",
    "megatron/modelzoo-DeepSeek-V3.yaml",
    "megatron/modelzoo-Mixtral-8x22B.yaml",
    "megatron/modelzoo-Qwen3-Next-80B-A3B.yaml",
    "megatron/slime-glm4.5-355B-A32B.args",
    "megatron/primus/mixtral_8x7B_v0.1.yaml",
    NULL,
};

static char folder[PATH_SIZE];
static char written[16][64];
static size_t files;

const char *support_data(const char *name)
{
    static char path[PATH_SIZE];
    const char *top = getenv("MOEFOLD_SRCDIR");
    int n = snprintf(
        path, sizeof path, "%s/tests/data/models/%s", top ? top : ".", name);

    assert_in_range(n, 1, sizeof path - 1);
    return path;
}

const char *support_folder(void)
{
    const char *tmp = getenv("TMPDIR");
    int n;

    if (folder[0])
        return folder;
    n = snprintf(
        folder, sizeof folder, "%s/moefold-model.XXXXXX", tmp ? tmp : "/tmp");
    assert_in_range(n, 1, sizeof folder - 1);
    assert_non_null(mkdtemp(folder));
    return folder;
}

static void remember(const char *name)
{
    for (size_t i = 0; i < files; i++)
        if (!strcmp(written[i], name))
            return;
    assert_true(files < sizeof written / sizeof *written);
    snprintf(written[files++], sizeof *written, "%s", name);
}

const char *support_write(const char *name, const void *text, size_t size)
{
    static char path[PATH_SIZE];
    int n = snprintf(path, sizeof path, "%s/%s", support_folder(), name);
    FILE *out;

    assert_in_range(n, 1, sizeof path - 1);
    remember(name);
    out = fopen(path, "w");
    assert_non_null(out);
    assert_int_equal(fwrite(text, 1, size, out), size);
    assert_int_equal(fclose(out), 0);
    return path;
}

int support_clean(void **state)
{
    char path[PATH_SIZE + 80];

    (void)state;
    for (size_t i = 0; i < files; i++) {
        int n = snprintf(path, sizeof path, "%s/%s", folder, written[i]);

        if (n < 0 || (size_t)n >= sizeof path || unlink(path))
            return -1;
    }
    return folder[0] && rmdir(folder) ? -1 : 0;
}

json_t *support_json(const char *name)
{
    json_error_t where;
    json_t *json = json_load_file(support_data(name), 0, &where);

    if (!json)
        fail_msg("%s:%d: %s", name, where.line, where.text);
    return json;
}

int support_read(json_t *json, const char *name, struct mf_model *model,
    struct mf_error *err)
{
    char file[64];
    char *text = json_dumps(json, JSON_INDENT(1));
    const char *path;

    assert_non_null(text);
    snprintf(file, sizeof file, "%s.json", name);
    path = support_write(file, text, strlen(text));
    free(text);
    json_decref(json);
    return mf_model_read(path, model, err);
}
