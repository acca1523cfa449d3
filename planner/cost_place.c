/* SPDX-License-Identifier: BSD-3-Clause
 * Counts where groups lie on the tiers of a network.
 */
#include "planner/cost_place.h"

#include <stdlib.h>
#include <string.h>

struct slot {
    struct mf_digits digits;
    struct mf_place *place; /* NULL: free */
};

struct mf_places {
    int tiers;
    int64_t world, node_ranks;
    int32_t *domain[MF_TIERS_MAX]; /* [world], dense */
    int32_t *count;                /* [world] scratch, zeros between uses */
    int32_t *member;               /* [world] scratch */
    struct slot *slot;             /* open addressing, a power of two */
    size_t slots, used;
};

static int64_t cluster_node_ranks(
    const struct mf_cluster *cluster, int64_t world)
{
    int64_t most = 1, left = world;

    for (size_t i = 0; i < cluster->nodes && left > 0; i++) {
        int64_t here = cluster->node[i].gpus;

        if (cluster->node[i].state != MF_NODE_UP)
            continue;
        here = here < left ? here : left;
        most = here > most ? here : most;
        left -= here;
    }
    return most;
}

/* Number domains by first appearance, so that they index an array. */
static int domains_make_dense(int32_t *domain, int64_t world)
{
    int32_t most = 0, next = 0, *number;

    for (int64_t r = 0; r < world; r++)
        most = domain[r] > most ? domain[r] : most;
    number = malloc(((size_t)most + 1) * sizeof *number);
    if (!number)
        return -1;
    memset(number, -1, ((size_t)most + 1) * sizeof *number);
    for (int64_t r = 0; r < world; r++) {
        if (number[domain[r]] < 0)
            number[domain[r]] = next++;
        domain[r] = number[domain[r]];
    }
    free(number);
    return 0;
}

static int places_read_domains(struct mf_places *places,
    const struct mf_cluster *cluster, struct mf_error *err)
{
    size_t bytes = (size_t)places->world * sizeof(int32_t);

    for (int t = 0; t < places->tiers; t++) {
        places->domain[t] = malloc(bytes);
        if (!places->domain[t])
            return mf_error_set(err, MF_FAILED, "out of memory");
        if (mf_cluster_domains(
                cluster, t, places->world, places->domain[t], err))
            return -1;
        if (domains_make_dense(places->domain[t], places->world))
            return mf_error_set(err, MF_FAILED, "out of memory");
    }
    return 0;
}

struct mf_places *mf_places_create(
    const struct mf_cluster *cluster, int64_t world, struct mf_error *err)
{
    struct mf_places *places = calloc(1, sizeof *places);

    if (!places)
        goto no_memory;
    places->tiers = cluster->tiers;
    places->world = world;
    places->node_ranks = cluster_node_ranks(cluster, world);
    places->slots = 64;
    places->count = calloc((size_t)world, sizeof *places->count);
    places->member = calloc((size_t)world, sizeof *places->member);
    places->slot = calloc(places->slots, sizeof *places->slot);
    if (!places->count || !places->member || !places->slot)
        goto no_memory;
    if (places_read_domains(places, cluster, err)) {
        mf_places_free(places);
        return NULL;
    }
    return places;

no_memory:
    mf_places_free(places);
    mf_error_set(err, MF_FAILED, "out of memory");
    return NULL;
}

void mf_places_free(struct mf_places *places)
{
    if (!places)
        return;
    for (int t = 0; t < places->tiers; t++)
        free(places->domain[t]);
    free(places->count);
    free(places->member);
    for (size_t i = 0; places->slot && i < places->slots; i++)
        free(places->slot[i].place);
    free(places->slot);
    free(places);
}

int64_t mf_places_node_ranks(const struct mf_places *places)
{
    return places->node_ranks;
}

/* Members of the group whose first rank is FIRST into places->member. */
static int64_t group_list(
    struct mf_places *places, const struct mf_digits *digits, int64_t first)
{
    int64_t n = 1;

    places->member[0] = (int32_t)first;
    for (int i = 0; i < digits->n; i++) {
        int64_t have = n;

        for (int64_t k = 1; k < digits->digit[i].size; k++)
            for (int64_t m = 0; m < have; m++)
                places->member[n++] =
                    (int32_t)(places->member[m] + k * digits->digit[i].stride);
    }
    return n;
}

static int64_t group_count_tier(struct mf_places *places, int t, int64_t n)
{
    int64_t domains = 0;

    for (int64_t m = 0; m < n; m++) {
        int32_t *count = &places->count[places->domain[t][places->member[m]]];

        domains += (*count)++ == 0;
    }
    return domains;
}

/* One group: grow the worst figures of PLACE by it. NEAR is [n], filled with
 * how many members share the domain of the tier before.
 */
static void group_measure(
    struct mf_places *places, int64_t n, int32_t *near, struct mf_place *place)
{
    for (int64_t m = 0; m < n; m++)
        near[m] = 1;
    for (int t = 0; t < places->tiers; t++) {
        const int32_t *domain = places->domain[t];
        int64_t domains = group_count_tier(places, t, n);

        if (domains > place->domains[t])
            place->domains[t] = domains;
        for (int64_t m = 0; m < n; m++) {
            int32_t here = places->count[domain[places->member[m]]];
            double away = here - near[m], share = away / near[m];

            place->away[t] = away > place->away[t] ? away : place->away[t];
            place->share[t] = share > place->share[t] ? share : place->share[t];
            near[m] = here;
        }
        for (int64_t m = 0; m < n; m++)
            places->count[domain[places->member[m]]] = 0;
    }
}

static bool rank_is_first(const struct mf_digits *digits, int64_t rank)
{
    for (int i = 0; i < digits->n; i++)
        if (rank / digits->digit[i].stride % digits->digit[i].size)
            return false;
    return true;
}

static int place_measure(struct mf_places *places,
    const struct mf_digits *digits, struct mf_place *place)
{
    int32_t *near;
    int64_t size = 1;

    *place = (struct mf_place){.outer = -1};
    for (int i = 0; i < digits->n; i++)
        size *= digits->digit[i].size;
    near = malloc((size_t)size * sizeof *near);
    if (!near)
        return -1;
    place->size = size;
    for (int64_t rank = 0; rank < places->world; rank++)
        if (rank_is_first(digits, rank))
            group_measure(
                places, group_list(places, digits, rank), near, place);
    for (int t = 0; t < places->tiers; t++)
        if (place->away[t] > 0)
            place->outer = t;
    free(near);
    return 0;
}

static uint64_t digits_hash(const struct mf_digits *digits)
{
    uint64_t hash = 1469598103934665603u;

    for (int i = 0; i < digits->n; i++) {
        hash = (hash ^ (uint64_t)digits->digit[i].size) * 1099511628211u;
        hash = (hash ^ (uint64_t)digits->digit[i].stride) * 1099511628211u;
    }
    return hash ^ (hash >> 29);
}

static bool digits_equal(const struct mf_digits *a, const struct mf_digits *b)
{
    if (a->n != b->n)
        return false;
    for (int i = 0; i < a->n; i++)
        if (a->digit[i].size != b->digit[i].size ||
            a->digit[i].stride != b->digit[i].stride)
            return false;
    return true;
}

static struct slot *slot_find(
    struct slot *slot, size_t slots, const struct mf_digits *digits)
{
    size_t i = digits_hash(digits) & (slots - 1);

    while (slot[i].place && !digits_equal(&slot[i].digits, digits))
        i = (i + 1) & (slots - 1);
    return &slot[i];
}

static int places_grow(struct mf_places *places)
{
    size_t slots = places->slots * 2;
    struct slot *slot = calloc(slots, sizeof *slot);

    if (!slot)
        return -1;
    for (size_t i = 0; i < places->slots; i++)
        if (places->slot[i].place)
            *slot_find(slot, slots, &places->slot[i].digits) = places->slot[i];
    free(places->slot);
    places->slot = slot;
    places->slots = slots;
    return 0;
}

const struct mf_place *mf_places_find(
    struct mf_places *places, const struct mf_digits *digits)
{
    struct slot *slot = slot_find(places->slot, places->slots, digits);
    struct mf_place *place;

    if (slot->place)
        return slot->place;
    if (2 * (places->used + 1) > places->slots) {
        if (places_grow(places))
            return NULL;
        slot = slot_find(places->slot, places->slots, digits);
    }
    place = malloc(sizeof *place);
    if (!place || place_measure(places, digits, place)) {
        free(place);
        return NULL;
    }
    slot->digits = *digits;
    slot->place = place;
    places->used++;
    return place;
}
