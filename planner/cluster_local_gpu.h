/* SPDX-License-Identifier: BSD-3-Clause
 * The GPUs of this machine.
 */
#ifndef MF_CLUSTER_LOCAL_GPU_H
#define MF_CLUSTER_LOCAL_GPU_H

#include "planner/cluster_facts.h"

/* Fill FACTS by asking nvidia-smi; how many GPUs CUDA_VISIBLE_DEVICES leaves,
 * 0 where there are none or no such program.
 */
int64_t mf_local_gpus(struct mf_facts *facts);

#endif
