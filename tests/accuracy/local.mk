# SPDX-License-Identifier: BSD-3-Clause
# make accuracy: the cost model against published runs that it was not fitted
# to. make accuracy-table: fit anew, and write what is built in.
EXTRA_PROGRAMS += tests/accuracy/accuracy
tests_accuracy_accuracy_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tests_accuracy_accuracy_SOURCES = tests/accuracy/main.c tests/accuracy/fit.c \
    tests/accuracy/rows.c tests/accuracy/solve.c tests/accuracy/table.c \
    tests/accuracy/write.c tests/accuracy/fit.h tests/accuracy/rows.h \
    tests/accuracy/solve.h tests/accuracy/table.h
tests_accuracy_accuracy_LDADD = libmoefold-planner.a libmoefold-layout.a \
    libmoefold-db.a $(HWLOC_LIBS) $(LIBXML2_LIBS) $(SLURM_LIBS) \
    $(JANSSON_LIBS) $(YAML_LIBS) $(SQLITE_LIBS)
CLEANFILES += tests/accuracy/accuracy

# A folder with the tables of tests/data/measured.
MEASURED_FOLDER = $(srcdir)/tests/data/measured
ACCURACY_FLAGS =

accuracy: tests/accuracy/accuracy
	tests/accuracy/accuracy $(MEASURED_FOLDER) $(ACCURACY_FLAGS)
accuracy-table: tests/accuracy/accuracy
	tests/accuracy/accuracy $(MEASURED_FOLDER) \
	    $(srcdir)/planner/published_table.c
.PHONY: accuracy accuracy-table

EXTRA_DIST += tests/data/measured/README.md tests/data/measured/runs.csv \
    tests/data/measured/feasible.csv tests/data/measured/models.csv \
    tests/data/measured/gemm.csv tests/data/measured/grouped-gemm.csv \
    tests/data/measured/nccl-one-node.csv tests/data/measured/deepep.csv \
    tests/data/measured/memory.csv tests/data/measured/layer.csv \
    tests/data/measured/simumax-b200.csv tests/data/measured/rank.jsonl \
    tests/data/measured/models/Grok1-314B.json \
    tests/data/measured/models/Llama3-8x70B.json \
    tests/data/measured/models/Mixtral-8x22B-G8T8.json
