/* SPDX-License-Identifier: BSD-3-Clause
 * Rank groups of a layout, equal to Megatron-LM's.
 *
 * Every axis of either grid is one or two "digits" of the rank number, each a
 * size and a stride; a group of a kind is the set of ranks that differ only in
 * the digits of that kind. So a group is known without building a list, and
 * the cost model can ask how far it reaches.
 */
#ifndef MF_GROUPS_H
#define MF_GROUPS_H

#include "planner/layout/layout.h"

enum mf_group_kind {
    MF_GROUP_TP,
    MF_GROUP_CP,
    MF_GROUP_PP,
    MF_GROUP_DP,
    MF_GROUP_DP_CP,
    MF_GROUP_TP_CP,
    MF_GROUP_TP_DP_CP,
    MF_GROUP_TP_PP,
    MF_GROUP_EMBD,
    MF_GROUP_EP,
    MF_GROUP_ETP,
    MF_GROUP_EDP,
    MF_GROUP_ETP_EP,
    MF_GROUP_ETP_EP_PP,
    MF_GROUP_KINDS
};

struct mf_digit {
    int64_t size, stride;
};

/* Digits of size over 1, by ascending stride. */
struct mf_digits {
    int n;
    struct mf_digit digit[8];
};

/* count groups of size ranks each, one after another in rank. Ranks in a
 * group ascend, groups stand by their first rank.
 */
struct mf_groups {
    int64_t count, size;
    int32_t *rank;
};

/* "tp", "dp_cp", ...: the JSON key of a kind. */
const char *mf_group_kind_name(enum mf_group_kind kind);

/* Digits of KIND. For MF_GROUP_EMBD those of MF_GROUP_PP. */
void mf_group_digits(const struct mf_layout *layout, enum mf_group_kind kind,
    struct mf_digits *digits);

/* Ranks in one group of KIND. */
int64_t mf_group_size(const struct mf_layout *layout, enum mf_group_kind kind);

/* The group of KIND that holds RANK, ascending, into MEMBER (mf_group_size
 * entries); returns the place of RANK in it.
 */
int64_t mf_group_members(const struct mf_layout *layout,
    enum mf_group_kind kind, int64_t rank, int32_t *member);

/* All groups of KIND of a resolved layout; free with mf_groups_free. */
int mf_groups_build(const struct mf_layout *layout, enum mf_group_kind kind,
    struct mf_groups *groups, struct mf_error *err);

void mf_groups_free(struct mf_groups *groups);

#endif
