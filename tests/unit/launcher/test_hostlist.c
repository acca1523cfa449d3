/* SPDX-License-Identifier: BSD-3-Clause
 * Host lists: what Slurm's manual shows, libslurm as the oracle, refusals.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_SLURM
#include <slurm/slurm.h>
#endif

#include "launcher/hostlist.h"

/* The hosts of TEXT joined by blanks are WANT. */
static void expands_to(const char *text, const char *want)
{
    struct mfl_list hosts = {0};
    struct mf_error err = {0};
    char got[1024] = "";
    size_t used = 0;

    if (mfl_hostlist_parse(text, &hosts, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    for (size_t i = 0; i < hosts.count; i++)
        used += (size_t)snprintf(
            got + used, sizeof got - used, "%s%s", i ? " " : "", hosts.item[i]);
    assert_string_equal(got, want);
    mfl_list_free(&hosts);
}

static void test_expressions(void **state)
{
    (void)state;
    expands_to("login", "login");
    expands_to("n[1-3]", "n1 n2 n3");
    expands_to("n[3,1-2]", "n3 n1 n2");
    expands_to("n[01-03,7]", "n01 n02 n03 n7");
    expands_to("n[08-11]", "n08 n09 n10 n11");
    expands_to("b,a,b", "b a b");
    expands_to("r[1-2]n[0-1]", "r1n0 r1n1 r2n0 r2n1");
    expands_to("n[1-2]-ib.site,x", "n1-ib.site n2-ib.site x");
    expands_to("n[5]", "n5");
}

#ifdef HAVE_SLURM
static void same_as_slurm(const char *text)
{
    struct mfl_list hosts = {0};
    struct mf_error err = {0};
    hostlist_t list = slurm_hostlist_create(text);

    assert_non_null(list);
    if (mfl_hostlist_parse(text, &hosts, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    assert_int_equal(slurm_hostlist_count(list), (int)hosts.count);
    for (size_t i = 0; i < hosts.count; i++) {
        char *host = slurm_hostlist_shift(list);

        assert_non_null(host);
        assert_string_equal(hosts.item[i], host);
        free(host);
    }
    slurm_hostlist_destroy(list);
    mfl_list_free(&hosts);
}

static void test_against_libslurm(void **state)
{
    (void)state;
    same_as_slurm("n[3,1-2]");
    same_as_slurm("dgx[001-128]");
    same_as_slurm("n[9-11],n10,login");
    same_as_slurm("gpu-a[01-04,07],gpu-b[1,3-5],c");
    same_as_slurm("n[098-102]");
    same_as_slurm("n10,n9,n10");
}
#endif

static void refused(const char *text, const char *why)
{
    struct mfl_list hosts = {0};
    struct mf_error err = {0};

    assert_int_equal(mfl_hostlist_parse(text, &hosts, &err), -1);
    assert_int_equal(err.status, MF_INVALID);
    if (!strstr(err.text, why))
        fail_msg("'%s' is refused with: %s", text, err.text);
    mfl_list_free(&hosts);
}

static void test_refusals(void **state)
{
    char many[600];

    (void)state;
    refused("", "empty");
    refused(", ,", "empty");
    refused("n[1-3", "not closed");
    refused("n[]", "nothing in the brackets");
    refused("n[3-1]", "rising");
    refused("n[1--3]", "rising");
    refused("n[1,]", "rising");
    refused("n[a]", "rising");
    refused("n[[1]]", "not opened");
    refused("n1]", "not opened");
    refused("n/1", "letters");
    refused("n1;reboot", "letters");
    refused("$(reboot)", "letters");
    refused("a\vb", "letters");
    refused("n*4", "letters");
    refused("-w", "dash");
    refused("n[0-99999999999]", "65536");
    refused("n[0-9][0-9][0-9][0-9][0-9]", "65536");
    refused("n[1-99999999999999999999]", "rising");
    memset(many, 'a', sizeof many - 1);
    many[sizeof many - 1] = 0;
    refused(many, "too long");
}

static void test_limit_is_reached(void **state)
{
    struct mfl_list hosts = {0};
    struct mf_error err = {0};

    (void)state;
    assert_int_equal(mfl_hostlist_parse("n[1-65536]", &hosts, &err), 0);
    assert_int_equal(hosts.count, 65536);
    assert_string_equal(hosts.item[65535], "n65536");
    mfl_list_free(&hosts);
}

static void test_counts(void **state)
{
    struct mf_error err = {0};
    long n[4];

    (void)state;
    assert_int_equal(mfl_hostlist_counts("8(x3),2", 4, n, &err), 0);
    assert_int_equal(n[0] + n[1] + n[2], 24);
    assert_int_equal(n[3], 2);
    assert_int_equal(mfl_hostlist_counts("5,1(x3)", 4, n, &err), 0);
    assert_int_equal(n[0], 5);
    assert_int_equal(n[3], 1);
    assert_int_equal(mfl_hostlist_counts("8(x3)", 4, n, &err), -1);
    assert_int_equal(mfl_hostlist_counts("8(x5)", 4, n, &err), -1);
    assert_int_equal(mfl_hostlist_counts("8(x4),", 4, n, &err), -1);
    assert_int_equal(mfl_hostlist_counts("8(x4", 4, n, &err), -1);
    assert_int_equal(mfl_hostlist_counts("", 4, n, &err), -1);
    assert_int_equal(mfl_hostlist_counts("99999999999(x4)", 4, n, &err), -1);
    assert_int_equal(err.status, MF_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expressions),
#ifdef HAVE_SLURM
        cmocka_unit_test(test_against_libslurm),
#endif
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_limit_is_reached),
        cmocka_unit_test(test_counts),
    };

    return cmocka_run_group_tests_name("hostlist", tests, NULL, NULL);
}
