# SPDX-License-Identifier: BSD-3-Clause
command_tests += tests/command/t0010-help.t tests/command/t0800-bad-input.t tests/command/t0810-hostile.t
