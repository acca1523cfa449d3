/* SPDX-License-Identifier: BSD-3-Clause
 * Differences, and the checks made of them.
 */
#include "runtime/verify_check.h"

#include <math.h>
#include <string.h>

#include "runtime/collective.h"

struct mfr_check *mfr_checks_add(
    struct mfr_checks *checks, const char *name, double bound, bool bits)
{
    struct mfr_check *check = &checks->check[checks->n];

    if (checks->n < MFR_CHECKS_MAX - 1)
        checks->n++;
    *check = (struct mfr_check){
        .name = name,
        .bits = bits,
        .bound = bound,
        .max_abs = NAN,
        .max_ref = NAN,
        .max_rel = NAN,
        .bitwise = MFR_BITS_UNKNOWN,
    };
    return check;
}

void mfr_check_double(struct mfr_check *check, double a, double b)
{
    double off = fabs(a - b);

    if (!isfinite(off))
        off = INFINITY;
    /* fmax takes the number where the other is NAN. */
    check->max_abs = fmax(check->max_abs, off);
    check->max_ref = fmax(check->max_ref, fabs(b));
}

void mfr_check_sum(struct mfr_check *check, double a, double b, double scale)
{
    mfr_check_double(check, a, b);
    check->max_ref = fmax(check->max_ref, scale);
}

void mfr_check_doubles(
    struct mfr_check *check, const float *a, const double *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        mfr_check_double(check, (double)a[i], b[i]);
}

void mfr_check_equal(struct mfr_check *check, bool equal)
{
    if (!equal)
        check->bitwise = MFR_BITS_DIFFER;
    else if (check->bitwise == MFR_BITS_UNKNOWN)
        check->bitwise = MFR_BITS_EQUAL;
}

void mfr_check_floats(
    struct mfr_check *check, const float *a, const float *b, int64_t n)
{
    if (n > 0)
        mfr_check_equal(check, !memcmp(a, b, (size_t)n * sizeof *a));
    for (int64_t i = 0; i < n; i++)
        mfr_check_double(check, (double)a[i], (double)b[i]);
}

/* MPI_MAX must find the worst, so -1 stands for what is not known. */
static double pack_number(double value)
{
    return isnan(value) ? -1 : value;
}

static double unpack_number(double value)
{
    return value < 0 ? NAN : value;
}

static double pack_bits(enum mfr_bitwise bitwise)
{
    return bitwise == MFR_BITS_UNKNOWN ? -1 : bitwise == MFR_BITS_DIFFER;
}

static enum mfr_bitwise unpack_bits(double value)
{
    if (value < 0)
        return MFR_BITS_UNKNOWN;
    return value > 0 ? MFR_BITS_DIFFER : MFR_BITS_EQUAL;
}

static int worst(double *v, int n, MPI_Comm comm, struct mf_error *err)
{
    return mfr_allreduce(MPI_IN_PLACE, v, n, MPI_DOUBLE, MPI_MAX, comm,
        "verify: MPI_Allreduce (results)", err);
}

/* One stage's verdict. A check to which no rank of the stage added anything is
 * not ok: what was not compared is not known to be right.
 */
static void judge(struct mfr_check *check)
{
    bool measured = !isnan(check->max_abs);

    if (measured && check->max_abs == 0)
        check->max_rel = 0;
    else if (measured)
        check->max_rel = check->max_abs / check->max_ref;
    check->ok = measured || check->bitwise != MFR_BITS_UNKNOWN;
    if (check->bits && check->bitwise != MFR_BITS_EQUAL)
        check->ok = false;
    if (check->bound > 0 && !(check->max_rel <= check->bound))
        check->ok = false;
}

int mfr_checks_settle(struct mfr_checks *checks, MPI_Comm stage, MPI_Comm base,
    struct mf_error *err)
{
    double v[4 * MFR_CHECKS_MAX];

    for (int i = 0; i < checks->n; i++) {
        v[3 * i] = pack_number(checks->check[i].max_abs);
        v[3 * i + 1] = pack_number(checks->check[i].max_ref);
        v[3 * i + 2] = pack_bits(checks->check[i].bitwise);
    }
    if (worst(v, 3 * checks->n, stage, err))
        return -1;
    for (int i = 0; i < checks->n; i++) {
        checks->check[i].max_abs = unpack_number(v[3 * i]);
        checks->check[i].max_ref = unpack_number(v[3 * i + 1]);
        checks->check[i].bitwise = unpack_bits(v[3 * i + 2]);
        judge(&checks->check[i]);
    }
    for (int i = 0; i < checks->n; i++) {
        v[4 * i] = pack_number(checks->check[i].max_abs);
        v[4 * i + 1] = pack_number(checks->check[i].max_rel);
        v[4 * i + 2] = pack_bits(checks->check[i].bitwise);
        v[4 * i + 3] = !checks->check[i].ok;
    }
    if (worst(v, 4 * checks->n, base, err))
        return -1;
    for (int i = 0; i < checks->n; i++) {
        checks->check[i].max_abs = unpack_number(v[4 * i]);
        checks->check[i].max_rel = unpack_number(v[4 * i + 1]);
        checks->check[i].bitwise = unpack_bits(v[4 * i + 2]);
        checks->check[i].ok = v[4 * i + 3] == 0;
    }
    return 0;
}

const struct mfr_check *mfr_checks_failed(const struct mfr_checks *checks)
{
    for (int i = 0; i < checks->n; i++)
        if (!checks->check[i].ok)
            return &checks->check[i];
    return NULL;
}

static json_t *number_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *bits_or_null(enum mfr_bitwise bitwise)
{
    return bitwise == MFR_BITS_UNKNOWN ? json_null() : json_boolean(bitwise);
}

json_t *mfr_checks_to_json(const struct mfr_checks *checks)
{
    json_t *list = json_array();

    for (int i = 0; i < checks->n; i++) {
        const struct mfr_check *check = &checks->check[i];
        json_t *item = json_pack("{s:s, s:o, s:o, s:o, s:b}", "name",
            check->name, "max_abs", number_or_null(check->max_abs), "max_rel",
            number_or_null(check->max_rel), "bitwise",
            bits_or_null(check->bitwise), "ok", check->ok);

        if (!item || json_array_append_new(list, item)) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static void format_number(double value, char *text, size_t size)
{
    if (isnan(value))
        snprintf(text, size, "-");
    else
        snprintf(text, size, "%.2e", value);
}

int mfr_checks_print(
    const struct mfr_checks *checks, FILE *file, struct mf_error *err)
{
    static const char *const bits[] = {"-", "differ", "equal"};
    char abs_text[32], rel_text[32];
    int wrote;

    wrote = fprintf(
        file, "%-24s %10s %10s %7s\n", "check", "max abs", "max rel", "bits");
    for (int i = 0; i < checks->n && wrote >= 0; i++) {
        const struct mfr_check *check = &checks->check[i];

        format_number(check->max_abs, abs_text, sizeof abs_text);
        format_number(check->max_rel, rel_text, sizeof rel_text);
        wrote = fprintf(file, "%-24s %10s %10s %7s  %s\n", check->name,
            abs_text, rel_text, bits[check->bitwise + 1],
            check->ok ? "ok" : "FAILED");
    }
    if (wrote < 0)
        return mf_error_set(err, MF_FAILED,
            "verify: cannot write the result; is the disk full?");
    return 0;
}
