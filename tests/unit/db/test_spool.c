/* SPDX-License-Identifier: BSD-3-Clause
 * Spools: what goes in comes out, and of a damaged one all that was whole.
 */
#include <unistd.h>

#include "db/internal.h"
#include "tests/unit/db/help.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_up, bed_down)

/* The check value of CRC-32/ISO-HDLC in Williams' catalogue. */
static void crc_has_its_check_value(void **state)
{
    (void)state;
    assert_int_equal(mfdb_crc32(0, "123456789", 9), 0xcbf43926);
    assert_int_equal(
        mfdb_crc32(mfdb_crc32(0, "1234", 4), "56789", 5), 0xcbf43926);
}

static void uuid_is_a_version_4(void **state)
{
    char a[MFDB_UUID_TEXT], b[MFDB_UUID_TEXT];

    (void)state;
    assert_int_equal(mfdb_uuid(a), 0);
    assert_int_equal(mfdb_uuid(b), 0);
    assert_string_not_equal(a, b);
    assert_int_equal(strlen(a), 36);
    assert_int_equal(a[14], '4');
    assert_non_null(strchr("89ab", a[19]));
}

static void all_members_come_back(void **state)
{
    struct bed *bed = *state;
    struct mfdb_run full, bare, found;
    mfdb *db = open_update(bed);

    run_make(&full, "done");
    run_make_bare(&bare);
    snprintf(bare.status, sizeof bare.status, "failed");
    run_save(bed, db, &full);
    run_save(bed, db, &bare);
    assert_int_equal(mfdb_find(db, full.run_id, &found, bed->err), 0);
    run_assert_equal(&full, &found);
    assert_int_equal(mfdb_find(db, bare.run_id, &found, bed->err), 0);
    run_assert_equal(&bare, &found);
    mfdb_close(db);
    /* Straight from the file: the columns are what their names say. */
    assert_int_equal(
        ask(bed->path, "SELECT count(*) FROM run WHERE hidden = 6144"
                       " AND started_unix_s = 1764547200.125"
                       " AND layer_s = 0.1 AND seq_tokens = 4096"),
        1);
    assert_int_equal(ask(bed->path, "SELECT count(*) FROM run"
                                    " WHERE layer_s IS NULL AND ranks IS NULL"),
        1);
}

static void samples_come_back(void **state)
{
    struct bed *bed = *state;
    struct mfdb_run run;
    struct mfdb_phases phases;
    char path[600];
    mfdb *db = open_update(bed);

    run_make(&run, "done");
    spool_write(bed, &run, 3, 1, path);
    assert_int_equal(mfdb_merge(db, path, bed->err), 0);
    assert_false(file_exists(path));
    assert_int_equal(mfdb_phases_of(db, run.run_id, &phases, bed->err), 0);
    assert_int_equal(phases.count, 1);
    assert_string_equal(phases.phase[0].phase, "dispatch");
    assert_string_equal(phases.phase[0].direction, "forward");
    assert_int_equal(phases.phase[0].samples, 3);
    assert_true(phases.phase[0].min_s == 0.25);
    assert_true(phases.phase[0].median_s == 0.5);
    assert_true(phases.phase[0].max_s == 0.75);
    assert_true(phases.phase[0].bytes == 1048576);
    assert_true(isnan(phases.phase[0].flops));
    assert_true(phases.phase[0].predicted_s == 0.4);
    mfdb_phases_free(&phases);
    mfdb_close(db);
    assert_int_equal(ask(bed->path, "SELECT sum(iteration * slowest_rank)"
                                    " FROM sample"),
        0 * 3 + 1 * 3 + 2 * 3);
}

static void hostile_texts_are_stored_as_they_are(void **state)
{
    static const char *const hostile[] = {"'; DROP TABLE run; --",
        "\"quoted\" \\ %s %n $(reboot) `id`", "two\nlines\tand\r\x1b[31m",
        "\xff\xfe not UTF-8", "sch\xc3\xb6n \xf0\x9f\x90\x84", "%_*?[a-z]"};
    struct bed *bed = *state;
    struct mfdb_run run, found;
    mfdb *db = open_update(bed);

    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        struct mfdb_filter filter = {.model = run.model};
        struct mfdb_runs runs;

        run_make(&run, "done");
        snprintf(run.model, sizeof run.model, "%s", hostile[i]);
        snprintf(run.command, sizeof run.command, "%s", hostile[i]);
        snprintf(run.node_list, sizeof run.node_list, "%s", hostile[i]);
        run_save(bed, db, &run);
        assert_int_equal(mfdb_find(db, run.run_id, &found, bed->err), 0);
        run_assert_equal(&run, &found);
        assert_int_equal(mfdb_list(db, &filter, &runs, bed->err), 0);
        assert_int_equal(runs.count, 1);
        mfdb_runs_free(&runs);
    }
    mfdb_close(db);
}

static void texts_of_full_length_come_back(void **state)
{
    struct bed *bed = *state;
    struct mfdb_run run, found;
    mfdb *db = open_update(bed);

    run_make(&run, "done");
    memset(run.command, 'c', sizeof run.command - 1);
    memset(run.layout, 'l', sizeof run.layout - 1);
    run_save(bed, db, &run);
    assert_int_equal(mfdb_find(db, run.run_id, &found, bed->err), 0);
    run_assert_equal(&run, &found);
    memset(run.command, 'c', sizeof run.command);
    assert_null(mfdb_spool_create(bed->spools, &run, bed->err));
    assert_non_null(strstr(bed->err, "command"));
    mfdb_close(db);
}

static void merging_twice_changes_nothing(void **state)
{
    struct bed *bed = *state;
    struct mfdb_run run;
    struct bytes spool, once;
    char path[600];
    mfdb *db = open_update(bed);

    run_make(&run, "done");
    spool_write(bed, &run, 5, 1, path);
    spool = file_read(path);
    assert_int_equal(mfdb_merge(db, path, bed->err), 0);
    once = file_read(bed->path);
    file_write(path, spool.byte, spool.size);
    assert_int_equal(mfdb_merge(db, path, bed->err), 0);
    assert_false(file_exists(path));
    mfdb_close(db);
    assert_int_equal(ask(bed->path, "SELECT count(*) FROM run"), 1);
    assert_int_equal(ask(bed->path, "SELECT count(*) FROM sample"), 5);
    assert_int_equal(once.size,
        (size_t)ask(bed->path, "SELECT page_count * page_size FROM"
                               " pragma_page_count, pragma_page_size"));
    free(spool.byte);
    free(once.byte);
}

static void a_spool_merged_by_another_is_no_error(void **state)
{
    struct bed *bed = *state;
    struct mfdb_run run;
    char path[600];
    mfdb *db;

    run_make(&run, "done");
    spool_write(bed, &run, 1, 1, path);
    db = open_update(bed);
    assert_false(file_exists(path));
    assert_int_equal(mfdb_merge(db, path, bed->err), 0);
    path[strlen(path) - strlen("0.spool")] ^= 1;
    assert_int_equal(mfdb_merge(db, path, bed->err), -2);
    assert_non_null(strstr(bed->err, "no such file"));
    mfdb_close(db);
}

/* Where the last record of a spool begins. */
static size_t last_record(struct bytes spool)
{
    size_t at = MFDB_SPOOL_HEADER_BYTES, last = at;

    while (at < spool.size) {
        const unsigned char *head = spool.byte + at;

        last = at;
        at += MFDB_SPOOL_RECORD_BYTES +
              (head[4] | (size_t)head[5] << 8 | (size_t)head[6] << 16);
    }
    assert_int_equal(at, spool.size);
    return last;
}

/* Merge the first SIZE bytes of SPOOL into an emptied database. */
static void merge_bytes(struct bed *bed, mfdb *db, const char *path,
    const unsigned char *byte, size_t size)
{
    change(bed->path, "PRAGMA foreign_keys = ON; DELETE FROM run");
    file_write(path, byte, size);
    if (mfdb_merge(db, path, bed->err) != 0)
        fail_msg("%s", bed->err);
    assert_false(file_exists(path));
}

static void check_lost(
    struct bed *bed, mfdb *db, const char *run_id, int64_t samples)
{
    struct mfdb_run found;

    assert_int_equal(mfdb_find(db, run_id, &found, bed->err), 0);
    assert_string_equal(found.status, "lost");
    assert_true(isnan(found.layer_s));
    assert_true(isnan(found.ended_at));
    assert_int_equal(ask(bed->path, "SELECT count(*) FROM sample"), samples);
}

static void a_cut_end_makes_a_lost_run(void **state)
{
    struct bed *bed = *state;
    struct mfdb_run run, found;
    struct bytes spool;
    char path[600];
    size_t last;
    mfdb *db = open_update(bed);

    run_make_bare(&run);
    snprintf(run.status, sizeof run.status, "done");
    run.layer_s = 0.5;
    spool_write(bed, &run, 2, 1, path);
    spool = file_read(path);
    last = last_record(spool);
    for (size_t size = last; size < spool.size; size++) {
        merge_bytes(bed, db, path, spool.byte, size);
        check_lost(bed, db, run.run_id, 2);
    }
    merge_bytes(bed, db, path, spool.byte, spool.size);
    assert_int_equal(mfdb_find(db, run.run_id, &found, bed->err), 0);
    run_assert_equal(&run, &found);
    mfdb_close(db);
    free(spool.byte);
}

static void a_cut_sample_is_left_out(void **state)
{
    struct bed *bed = *state;
    struct mfdb_run run;
    struct bytes spool;
    char path[600];
    size_t last;
    mfdb *db = open_update(bed);

    run_make_bare(&run);
    spool_write(bed, &run, 3, 0, path);
    spool = file_read(path);
    last = last_record(spool);
    for (size_t size = last; size < spool.size; size++) {
        merge_bytes(bed, db, path, spool.byte, size);
        check_lost(bed, db, run.run_id, 2);
    }
    merge_bytes(bed, db, path, spool.byte, spool.size);
    check_lost(bed, db, run.run_id, 3);
    mfdb_close(db);
    free(spool.byte);
}

static void a_changed_byte_is_seen(void **state)
{
    struct bed *bed = *state;
    struct mfdb_run run;
    struct bytes spool;
    char path[600];
    size_t last;
    mfdb *db = open_update(bed);

    run_make_bare(&run);
    spool_write(bed, &run, 3, 0, path);
    spool = file_read(path);
    last = last_record(spool);
    for (size_t at = last; at < spool.size; at++) {
        spool.byte[at] ^= 0x10;
        merge_bytes(bed, db, path, spool.byte, spool.size);
        check_lost(bed, db, run.run_id, 2);
        spool.byte[at] ^= 0x10;
    }
    mfdb_close(db);
    free(spool.byte);
}

static void a_cut_copy_undoes_nothing(void **state)
{
    struct bed *bed = *state;
    struct mfdb_run run, found;
    struct bytes spool;
    char path[600];
    mfdb *db = open_update(bed);

    run_make(&run, "done");
    spool_write(bed, &run, 4, 1, path);
    spool = file_read(path);
    file_write(path, spool.byte, last_record(spool));
    assert_int_equal(mfdb_merge(db, path, bed->err), 0);
    check_lost(bed, db, run.run_id, 4);
    file_write(path, spool.byte, spool.size);
    assert_int_equal(mfdb_merge(db, path, bed->err), 0);
    file_write(path, spool.byte, last_record(spool));
    assert_int_equal(mfdb_merge(db, path, bed->err), 0);
    assert_int_equal(mfdb_find(db, run.run_id, &found, bed->err), 0);
    run_assert_equal(&run, &found);
    assert_int_equal(ask(bed->path, "SELECT count(*) FROM sample"), 4);
    mfdb_close(db);
    free(spool.byte);
}

static void a_living_run_is_left_alone(void **state)
{
    struct bed *bed = *state;
    struct mfdb_run run, found;
    char path[600];
    mfdb_spool *spool;
    mfdb *db;

    run_make(&run, "running");
    spool = mfdb_spool_create(bed->spools, &run, bed->err);
    assert_non_null(spool);
    snprintf(path, sizeof path, "%s", mfdb_spool_path(spool));
    db = open_update(bed);
    assert_null(mfdb_warning(db));
    assert_true(file_exists(path));
    assert_int_equal(mfdb_merge(db, path, bed->err), -1);
    assert_non_null(strstr(bed->err, "still writing"));
    mfdb_close(db);
    mfdb_spool_close(spool);
    db = open_update(bed);
    assert_false(file_exists(path));
    assert_int_equal(mfdb_find(db, run.run_id, &found, bed->err), 0);
    assert_string_equal(found.status, "lost");
    mfdb_close(db);
}

static void what_is_no_spool_is_refused_and_kept(void **state)
{
    static const char *const other[] = {
        "", "m", "moefold-spool\r\n", "a letter of many words to somebody"};
    struct bed *bed = *state;
    struct mfdb_run run;
    char path[600];
    struct bytes spool, text;
    mfdb *db;

    run_make(&run, "done");
    spool_write(bed, &run, 1, 1, path);
    spool = file_read(path);
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        file_write(path, other[i], strlen(other[i]));
        text = file_read(path);
        db = open_update(bed);
        assert_non_null(strstr(mfdb_warning(db), "not a spool"));
        assert_int_equal(mfdb_merge(db, path, bed->err), -2);
        assert_file_is(path, text);
        mfdb_close(db);
        free(text.byte);
    }
    spool.byte[MFDB_SPOOL_MAGIC_BYTES]++;
    file_write(path, spool.byte, spool.size);
    db = open_update(bed);
    assert_non_null(strstr(mfdb_warning(db), "version 2"));
    assert_file_is(path, spool);
    mfdb_close(db);
    free(spool.byte);
}

static void a_damaged_first_record_is_refused_and_kept(void **state)
{
    struct bed *bed = *state;
    struct mfdb_run run;
    char path[600];
    struct bytes spool;
    mfdb *db;

    run_make(&run, "done");
    spool_write(bed, &run, 1, 1, path);
    spool = file_read(path);
    spool.byte[MFDB_SPOOL_HEADER_BYTES + 100] ^= 1;
    file_write(path, spool.byte, spool.size);
    db = open_update(bed);
    assert_non_null(strstr(mfdb_warning(db), "damaged at its first record"));
    assert_file_is(path, spool);
    mfdb_close(db);
    assert_int_equal(ask(bed->path, "SELECT count(*) FROM run"), 0);
    free(spool.byte);
}

static void wrong_samples_are_refused_whole(void **state)
{
    struct bed *bed = *state;
    struct mfdb_run run;
    struct mfdb_sample sample[2];
    mfdb_spool *spool;
    struct bytes before;

    run_make(&run, "running");
    spool = mfdb_spool_create(bed->spools, &run, bed->err);
    assert_non_null(spool);
    before = file_read(mfdb_spool_path(spool));
    sample_make(&sample[0], 0);
    sample_make(&sample[1], 0);
    sample[1].max_s = -1e-9;
    assert_int_equal(mfdb_spool_append(spool, sample, 2, bed->err), -1);
    assert_non_null(strstr(bed->err, "max_s"));
    sample[1].max_s = (double)INFINITY;
    assert_int_equal(mfdb_spool_append(spool, sample, 2, bed->err), -1);
    sample_make(&sample[1], -1);
    assert_int_equal(mfdb_spool_append(spool, sample, 2, bed->err), -1);
    assert_non_null(strstr(bed->err, "iteration"));
    sample_make(&sample[1], 0);
    snprintf(sample[1].direction, sizeof sample[1].direction, "up");
    assert_int_equal(mfdb_spool_append(spool, sample, 2, bed->err), -1);
    assert_non_null(strstr(bed->err, "direction"));
    assert_file_is(mfdb_spool_path(spool), before);
    free(before.byte);
    mfdb_spool_close(spool);
}

static void wrong_runs_are_refused(void **state)
{
    struct bed *bed = *state;
    struct mfdb_run run, other;
    mfdb_spool *spool;

    run_make(&run, "running");
    other = run;
    snprintf(other.run_id, sizeof other.run_id, "../../etc/passwd");
    assert_null(mfdb_spool_create(bed->spools, &other, bed->err));
    assert_non_null(strstr(bed->err, "UUID"));
    other = run;
    snprintf(other.status, sizeof other.status, "asleep");
    assert_null(mfdb_spool_create(bed->spools, &other, bed->err));
    other = run;
    other.ranks = 0;
    assert_null(mfdb_spool_create(bed->spools, &other, bed->err));
    spool = mfdb_spool_create(bed->spools, &run, bed->err);
    assert_non_null(spool);
    assert_null(mfdb_spool_create(bed->spools, &run, bed->err));
    assert_non_null(strstr(bed->err, "already"));
    assert_int_equal(mfdb_spool_finish(spool, &run, bed->err), -1);
    run_make(&other, "done");
    assert_int_equal(mfdb_spool_finish(spool, &other, bed->err), -1);
    snprintf(run.status, sizeof run.status, "done");
    assert_int_equal(mfdb_spool_finish(spool, &run, bed->err), 0);
    assert_int_equal(mfdb_spool_finish(spool, &run, bed->err), -1);
    mfdb_spool_close(spool);
}

static void a_folder_that_is_a_file_is_an_error(void **state)
{
    struct bed *bed = *state;
    struct mfdb_run run;

    run_make(&run, "running");
    file_write(bed->spools, "x", 1);
    assert_null(mfdb_spool_create(bed->spools, &run, bed->err));
    assert_non_null(strstr(bed->err, bed->spools));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc_has_its_check_value),
        cmocka_unit_test(uuid_is_a_version_4),
        TEST(all_members_come_back),
        TEST(samples_come_back),
        TEST(hostile_texts_are_stored_as_they_are),
        TEST(texts_of_full_length_come_back),
        TEST(merging_twice_changes_nothing),
        TEST(a_spool_merged_by_another_is_no_error),
        TEST(a_cut_end_makes_a_lost_run),
        TEST(a_cut_sample_is_left_out),
        TEST(a_changed_byte_is_seen),
        TEST(a_cut_copy_undoes_nothing),
        TEST(a_living_run_is_left_alone),
        TEST(what_is_no_spool_is_refused_and_kept),
        TEST(a_damaged_first_record_is_refused_and_kept),
        TEST(wrong_samples_are_refused_whole),
        TEST(wrong_runs_are_refused),
        TEST(a_folder_that_is_a_file_is_an_error),
    };

    return cmocka_run_group_tests_name("spool", tests, NULL, NULL);
}
