/* SPDX-License-Identifier: BSD-3-Clause
 * All device kernels by name, for tables: MFD_LIST(X) is X(name) for each.
 */
#ifndef MFD_LIST_H
#define MFD_LIST_H

#define MFD_LIST(X)                                                            \
    X(mfd_count)                                                               \
    X(mfd_scan)                                                                \
    X(mfd_place)                                                               \
    X(mfd_product)                                                             \
    X(mfd_route)                                                               \
    X(mfd_route_backward)                                                      \
    X(mfd_widen)                                                               \
    X(mfd_narrow)                                                              \
    X(mfd_permute_f32)                                                         \
    X(mfd_permute_bf16)                                                        \
    X(mfd_collect_f32)                                                         \
    X(mfd_collect_bf16)                                                        \
    X(mfd_unpermute_f32)                                                       \
    X(mfd_unpermute_bf16)                                                      \
    X(mfd_unpermute_backward_f32)                                              \
    X(mfd_unpermute_backward_bf16)                                             \
    X(mfd_swiglu_f32)                                                          \
    X(mfd_swiglu_bf16)                                                         \
    X(mfd_swiglu_backward_f32)                                                 \
    X(mfd_swiglu_backward_bf16)                                                \
    X(mfd_add_f32)                                                             \
    X(mfd_add_bf16)                                                            \
    X(mfd_scale_f32)                                                           \
    X(mfd_scale_bf16)

#endif
