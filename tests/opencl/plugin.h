/* SPDX-License-Identifier: BSD-3-Clause
 * The tests' device plug-in; MOEFOLD_SRCDIR says where the kernels' text is.
 */
#ifndef OPENCL_PLUGIN_H
#define OPENCL_PLUGIN_H

#include "kernels/device/api.h"

extern const struct mfk_device_api mfk_device_plugin;

#endif
