/* SPDX-License-Identifier: BSD-3-Clause
 * Where groups lie: what the cost model works out from the digits of a layout
 * equals counting over the explicit lists of ranks.
 */
#include "tests/unit/cost/bed.h"

/* The law of folding leaves these free. */
static bool random_layout(
    uint64_t *seed, int64_t most, struct mf_layout *layout)
{
    static const int64_t sizes[] = {1, 1, 2, 2, 3, 4, 5, 6, 8};
    struct mf_error err;
    int64_t ranks;

    *layout = (struct mf_layout){.order = mf_order_default()};
    layout->tp = bed_pick(seed, sizes, 9);
    layout->cp = bed_pick(seed, sizes, 5);
    layout->dp = bed_pick(seed, sizes, 9);
    layout->pp = bed_pick(seed, sizes, 6);
    ranks = layout->tp * layout->cp * layout->dp;
    layout->etp = bed_pick(seed, sizes, 9);
    layout->ep = bed_pick(seed, sizes, 9);
    if (ranks % (layout->etp * layout->ep) || ranks * layout->pp > most)
        return false;
    layout->edp = ranks / layout->etp / layout->ep;
    if (bed_random(seed) % 4 == 0)
        assert_int_equal(mf_order_parse("tp-cp-ep-pp-dp", &layout->order,
                             &(unsigned){0}, &err),
            0);
    layout->coupled = bed_random(seed) % 3 == 0;
    return mf_layout_resolve(layout, ranks * layout->pp, ~0u, &err) == 0;
}

/* The worst of one group, member by member against every other one. */
static void count_group(const struct mf_cluster *cluster,
    int32_t *const *domain, const int32_t *rank, int64_t n,
    struct mf_place *worst)
{
    for (int t = 0; t < cluster->tiers; t++) {
        int64_t domains = 0;

        for (int64_t i = 0; i < n; i++) {
            int64_t near = 0, inner = 0;
            bool first = true;

            for (int64_t j = 0; j < n; j++) {
                bool same = domain[t][rank[i]] == domain[t][rank[j]];

                near += same;
                inner += t == 0
                             ? i == j
                             : domain[t - 1][rank[i]] == domain[t - 1][rank[j]];
                if (same && j < i)
                    first = false;
            }
            domains += first;
            worst->away[t] = fmax(worst->away[t], (double)(near - inner));
            worst->share[t] =
                fmax(worst->share[t], (double)(near - inner) / (double)inner);
            if (near > inner && t > worst->outer)
                worst->outer = t;
        }
        if (domains > worst->domains[t])
            worst->domains[t] = domains;
    }
}

static void check_layout(const struct mf_cluster *cluster,
    int32_t *const *domain, const struct mf_layout *layout)
{
    int64_t world = mf_layout_world(layout);
    struct mf_places *places = mf_places_create(cluster, world, NULL);

    assert_non_null(places);
    for (int kind = 0; kind < MF_GROUP_KINDS; kind++) {
        struct mf_place worst = {.outer = -1};
        const struct mf_place *place;
        struct mf_groups groups;
        struct mf_digits digits;

        if (kind == MF_GROUP_EMBD)
            continue;
        assert_int_equal(
            mf_groups_build(layout, (enum mf_group_kind)kind, &groups, NULL),
            0);
        for (int64_t g = 0; g < groups.count; g++)
            count_group(cluster, domain, groups.rank + g * groups.size,
                groups.size, &worst);
        mf_group_digits(layout, (enum mf_group_kind)kind, &digits);
        place = mf_places_find(places, &digits);
        assert_non_null(place);
        assert_int_equal(place->size, groups.size);
        assert_int_equal(place->outer, worst.outer);
        for (int t = 0; t < cluster->tiers; t++) {
            assert_true(place->away[t] == worst.away[t]);
            assert_true(place->share[t] == worst.share[t]);
            assert_int_equal(place->domains[t], worst.domains[t]);
        }
        mf_groups_free(&groups);
    }
    mf_places_free(places);
}

static void check_cluster(const int64_t *sizes, int nodes, int layouts)
{
    struct mf_cluster cluster;
    uint64_t seed = 20250101;
    int64_t devices;
    int done = 0;

    bed_nodes(&cluster, sizes, nodes);
    devices = mf_cluster_devices(&cluster);
    print_message("# seed %llu\n", (unsigned long long)seed);
    while (done < layouts) {
        int32_t *domain[MF_TIERS_MAX] = {NULL};
        struct mf_layout layout;
        int64_t world;

        if (!random_layout(&seed, devices, &layout))
            continue;
        world = mf_layout_world(&layout);
        for (int t = 0; t < cluster.tiers; t++) {
            domain[t] = calloc((size_t)world, sizeof *domain[t]);
            assert_int_equal(
                mf_cluster_domains(&cluster, t, world, domain[t], NULL), 0);
        }
        check_layout(&cluster, domain, &layout);
        for (int t = 0; t < cluster.tiers; t++)
            free(domain[t]);
        done++;
    }
    mf_cluster_free(&cluster);
}

static void even_nodes(void **state)
{
    const int64_t sizes[] = {8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8};

    (void)state;
    check_cluster(sizes, 12, 500);
}

static void uneven_nodes(void **state)
{
    const int64_t sizes[] = {8, 3, 8, 8, 1, 6, 8, 7, 8, 8, 2, 8, 8};

    (void)state;
    check_cluster(sizes, 13, 500);
}

/* 16 ranks on two nodes of 8. Four ranks with stride 4 have two in each node:
 * from a rank one peer is near, two are far; a node lacks two, which its two
 * members fetch one each.
 */
static void by_hand(void **state)
{
    struct mf_digits digits = {1, {{4, 4}}};
    const struct mf_place *place;
    struct mf_cluster cluster;
    struct mf_places *places;

    (void)state;
    bed_h100(&cluster, 2);
    places = mf_places_create(&cluster, 16, NULL);
    assert_non_null(places);
    place = mf_places_find(places, &digits);
    assert_int_equal(place->size, 4);
    assert_int_equal(place->outer, 1);
    assert_true(place->away[0] == 1);
    assert_true(place->away[1] == 2);
    assert_true(place->share[0] == 1);
    assert_true(place->share[1] == 1);
    assert_int_equal(place->domains[0], 2);
    assert_int_equal(place->domains[1], 1);
    mf_places_free(places);
    mf_cluster_free(&cluster);
}

static void too_large_a_world(void **state)
{
    struct mf_error err = {0};
    struct mf_cluster cluster;

    (void)state;
    bed_h100(&cluster, 1);
    assert_null(mf_places_create(&cluster, 9, &err));
    assert_int_equal(err.status, MF_NO);
    mf_cluster_free(&cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),
        cmocka_unit_test(even_nodes),
        cmocka_unit_test(uneven_nodes),
        cmocka_unit_test(too_large_a_world),
    };

    return cmocka_run_group_tests_name("cost/place", tests, NULL, NULL);
}
