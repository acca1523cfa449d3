# SPDX-License-Identifier: BSD-3-Clause
cost_bed = tests/unit/cost/bed.c tests/unit/cost/bed.h
cost_libs = libmoefold-planner.a libmoefold-layout.a $(JANSSON_LIBS) \
    $(YAML_LIBS) $(UNIT_LIBS)

unit_tests += tests/unit/cost/test_place
tests_unit_cost_test_place_CFLAGS = $(UNIT_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_cost_test_place_SOURCES = tests/unit/cost/test_place.c $(cost_bed)
tests_unit_cost_test_place_LDADD = $(cost_libs)

unit_tests += tests/unit/cost/test_cost
tests_unit_cost_test_cost_CFLAGS = $(UNIT_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_cost_test_cost_SOURCES = tests/unit/cost/test_cost.c $(cost_bed)
tests_unit_cost_test_cost_LDADD = $(cost_libs)

unit_tests += tests/unit/cost/test_sane
tests_unit_cost_test_sane_CFLAGS = $(UNIT_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_cost_test_sane_SOURCES = tests/unit/cost/test_sane.c $(cost_bed)
tests_unit_cost_test_sane_LDADD = $(cost_libs)

unit_tests += tests/unit/cost/test_search
tests_unit_cost_test_search_CFLAGS = $(UNIT_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_cost_test_search_SOURCES = tests/unit/cost/test_search.c \
    $(cost_bed)
tests_unit_cost_test_search_LDADD = $(cost_libs)

unit_tests += tests/unit/cost/test_brute
tests_unit_cost_test_brute_CFLAGS = $(UNIT_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_cost_test_brute_SOURCES = tests/unit/cost/test_brute.c $(cost_bed)
tests_unit_cost_test_brute_LDADD = $(cost_libs)

unit_tests += tests/unit/cost/test_fit
tests_unit_cost_test_fit_CFLAGS = $(UNIT_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_cost_test_fit_SOURCES = tests/unit/cost/test_fit.c $(cost_bed)
tests_unit_cost_test_fit_LDADD = libmoefold-planner.a libmoefold-layout.a \
    libmoefold-db.a $(JANSSON_LIBS) $(YAML_LIBS) $(SQLITE_LIBS) $(UNIT_LIBS)

command_tests += tests/command/t0201-predict.t tests/command/t0202-plan.t \
    tests/command/t0203-size.t tests/command/t0204-paper.t \
    tests/command/t0502-fit.t

unit_tests += tests/unit/cost/test_flops
tests_unit_cost_test_flops_CFLAGS = $(UNIT_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_cost_test_flops_SOURCES = tests/unit/cost/test_flops.c \
    tests/unit/model/support.c tests/unit/model/support.h
tests_unit_cost_test_flops_LDADD = $(cost_libs)
