# SPDX-License-Identifier: BSD-3-Clause
dist_man_MANS += man/moefold.1 man/moefold-run.1 man/moefold-safetensors.5 \
    man/moefold-dispatch.7
