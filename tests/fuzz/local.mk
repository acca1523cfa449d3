# SPDX-License-Identifier: BSD-3-Clause
# Readers under libFuzzer, by hand: make fuzz-model. Needs clang.
EXTRA_DIST += tests/fuzz/README.md tests/fuzz/fuzz_model.c
FUZZ_CC = clang
FUZZ_CFLAGS = -g -O1 -std=c17 -D_GNU_SOURCE \
    -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined
FUZZ_SECONDS = 600
FUZZ_FLAGS = -max_len=65536 -timeout=10 -rss_limit_mb=1024 \
    -max_total_time=$(FUZZ_SECONDS)

fuzz_model_sources = $(srcdir)/tests/fuzz/fuzz_model.c \
    $(srcdir)/planner/model_read*.c $(srcdir)/planner/layout/model*.c \
    $(srcdir)/planner/layout/error.c

fuzz-model:
	$(MKDIR_P) tests/fuzz/corpus-model
	$(FUZZ_CC) $(FUZZ_CFLAGS) $(DEFS) $(AM_CPPFLAGS) $(JANSSON_CFLAGS) \
	    $(YAML_CFLAGS) -o tests/fuzz/fuzz-model $(fuzz_model_sources) \
	    $(JANSSON_LIBS) $(YAML_LIBS) -lm
	tests/fuzz/fuzz-model $(FUZZ_FLAGS) tests/fuzz/corpus-model \
	    $(srcdir)/tests/data/models $(srcdir)/tests/data/models/megatron
.PHONY: fuzz-model

include tests/fuzz/cluster.mk
