/* SPDX-License-Identifier: BSD-3-Clause
 * Measured collectives in one node.
 */
#ifndef MF_KERNEL_TABLE_H
#define MF_KERNEL_TABLE_H

/* BYTES of the whole buffer over RANKS devices. */
struct mf_kernel_point {
    const char *device, *op;
    int ranks, bytes;
    double seconds;
};

/* By device, op and ranks, then bytes ascending. */
extern const struct mf_kernel_point mf_kernel_points[];
extern const int mf_kernel_point_count;

#endif
