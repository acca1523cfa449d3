# SPDX-License-Identifier: BSD-3-Clause
noinst_LIBRARIES += libmoefold-layout.a libmoefold-planner.a

# jansson only: the launcher, the runtime and the planner all link this.
libmoefold_layout_a_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
libmoefold_layout_a_SOURCES = \
    planner/layout/error.c planner/layout/error.h \
    planner/layout/number.c planner/layout/number.h \
    planner/layout/hostlist.c planner/layout/hostlist.h \
    planner/layout/layout.c planner/layout/layout.h \
    planner/layout/groups.c planner/layout/groups.h \
    planner/layout/phase.c planner/layout/phase.h \
    planner/layout/streams.c planner/layout/streams.h \
    planner/layout/cluster.c planner/layout/cluster_json.c \
    planner/layout/cluster.h

libmoefold_layout_a_SOURCES += \
    planner/layout/model.c planner/layout/model_count.c \
    planner/layout/model_field.c planner/layout/model_json.c \
    planner/layout/model_json_read.c planner/layout/model_names.c \
    planner/layout/model_names.h \
    planner/layout/model.h planner/layout/model_field.h

libmoefold_layout_a_SOURCES += \
    planner/layout/plan.c planner/layout/plan_read.c \
    planner/layout/plan_write.c planner/layout/runnable.c \
    planner/layout/plan.h planner/layout/plan_field.h \
    planner/layout/runnable.h

libmoefold_planner_a_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(YAML_CFLAGS) \
    $(HWLOC_CFLAGS) $(LIBXML2_CFLAGS) $(SLURM_CFLAGS)
libmoefold_planner_a_SOURCES = planner/child.c planner/child.h \
    planner/cost.h planner/search.h planner/fit.h \
    planner/model_read.h planner/cluster_read.h

libmoefold_planner_a_SOURCES += \
    planner/model_read.c planner/model_read_attention.c \
    planner/model_read_blocks.c planner/model_read_config.c \
    planner/model_read_dense.c planner/model_read_dialect.c \
    planner/model_read_find.c planner/model_read_hybrid.c \
    planner/model_read_list.c \
    planner/model_read_unknown.c planner/model_read_config.h \
    planner/model_read_keys.c planner/model_read_megatron.c \
    planner/model_read_moe.c planner/model_read_words.c \
    planner/model_read_yaml.c planner/model_read_megatron.h \
    planner/model_read_shape.c planner/model_read_dialect.h \
    planner/model_read_rows.h planner/model_read_shape.h

libmoefold_planner_a_SOURCES += \
    planner/cluster_join.c planner/cluster_local.c \
    planner/cluster_machine.c planner/cluster_measure.c \
    planner/cluster_preset.c planner/cluster_read.c \
    planner/cluster_slurm.c planner/cluster_slurm_ask.c \
    planner/cluster_topology.c \
    planner/cluster_machine.h planner/cluster_parts.h

libmoefold_planner_a_SOURCES += \
    planner/text_file.c planner/text_file.h \
    planner/conf_lines.c planner/conf_lines.h \
    planner/cluster_conf.c planner/cluster_conf_settle.c \
    planner/cluster_devices.c planner/cluster_facts.c \
    planner/cluster_file.c planner/cluster_finish.c \
    planner/cluster_smi.c planner/cluster_xml.c planner/cluster_nccl.c \
    planner/cluster_hwloc.c planner/cluster_facts.h \
    planner/cluster_xml.h planner/cluster_smi.h \
    planner/cluster_gres.c planner/cluster_net.c planner/cluster_pick.c \
    planner/cluster_cgroup.c planner/cluster_local_gpu.c \
    planner/cluster_local_gpu.h \
    planner/cluster_probe.c planner/cluster_yaml.c \
    planner/cluster_conf.h planner/cluster_file.h

libmoefold_planner_a_SOURCES += \
    planner/coefficients.c planner/cost.c planner/cost_balance.c \
    planner/cost_check.c planner/cost_flops.c planner/cost_layer.c \
    planner/cost_memory.c planner/cost_place.c planner/cost_step.c \
    planner/cost_choice.c planner/cost_pricer.h planner/front.c \
    planner/cost_schedule.c planner/cost_time.c planner/cost_parts.h \
    planner/cost_place.h \
    planner/published.c planner/published_table.c planner/published.h \
    planner/kernel.c planner/kernel_table.c planner/kernel.h \
    planner/kernel_table.h \
    planner/search.c planner/search_order.c planner/search_rank.c \
    planner/search_parts.h \
    planner/fit.c planner/fit_rows.c planner/fit_solve.c planner/fit_rows.h

bin_PROGRAMS += moefold
moefold_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
moefold_SOURCES = planner/cli/main.c \
    planner/cli/cli.c planner/cli/cli.h \
    planner/cli/help.c planner/cli/help.h \
    planner/cli/inputs.c planner/cli/inputs_settings.c \
    planner/cli/inputs_sources.c \
    planner/cli/inputs.h \
    planner/cli/commands.h \
    planner/cli/cmd_groups.c
moefold_SOURCES += planner/cli/cmd_model.c
moefold_SOURCES += planner/cli/cmd_cluster.c \
    planner/cli/cluster_probe.c planner/cli/cluster_probe.h
moefold_SOURCES += planner/cli/cmd_launch.c planner/cli/cmd_map.c \
    planner/cli/cmd_run.c
moefold_SOURCES += planner/cli/searching.c planner/cli/searching.h \
    planner/cli/rejects.c planner/cli/rejects.h planner/cli/cmd_size.c
moefold_SOURCES += planner/cli/cmd_predict.c planner/cli/cmd_plan.c \
    planner/cli/cmd_fit.c planner/cli/cmd_explain.c \
    planner/cli/fitted.c planner/cli/fitted.h
moefold_SOURCES += planner/cli/cmd_exec.c planner/cli/cmd_export.c \
    planner/cli/cmd_tune.c
moefold_SOURCES += planner/cli/cmd_history.c \
    planner/cli/history_json.c planner/cli/history_table.c \
    planner/cli/history_columns.c planner/cli/history_columns.h \
    planner/cli/history_compare.c planner/cli/history_exchange.c \
    planner/cli/history_keep.c planner/cli/history_nccl.c \
    planner/cli/history_nccl.h planner/cli/history_report.c \
    planner/cli/history_time.c planner/cli/history_verbs.h \
    planner/cli/report_page.c planner/cli/report_page.h \
    planner/cli/history.h planner/cli/database.c planner/cli/database.h
moefold_LDADD = libmoefold-launcher.a libmoefold-planner.a \
    libmoefold-layout.a libmoefold-db.a \
    $(HWLOC_LIBS) $(LIBXML2_LIBS) $(SLURM_LIBS) $(JANSSON_LIBS) \
    $(YAML_LIBS) $(SQLITE_LIBS)
