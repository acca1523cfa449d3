/* SPDX-License-Identifier: BSD-3-Clause
 * Opening: files that are not ours stay as they were, read-only ones answer.
 */
#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/db/help.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_up, bed_down)

static int entries(const char *folder)
{
    DIR *dir = opendir(folder);
    int count = 0;

    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count - 2; /* . and .. */
}

/* Refused both ways with WORD in the text, file and folder unchanged. */
static void check_refused(struct bed *bed, const char *word)
{
    struct bytes before = file_read(bed->path);

    assert_null(mfdb_open(bed->path, MFDB_UPDATE, bed->err));
    assert_non_null(strstr(bed->err, word));
    assert_non_null(strstr(bed->err, bed->path));
    assert_file_is(bed->path, before);
    assert_null(mfdb_open(bed->path, MFDB_QUERY, bed->err));
    assert_non_null(strstr(bed->err, word));
    assert_file_is(bed->path, before);
    assert_int_equal(entries(bed->folder), 1);
    free(before.byte);
}

static void a_new_file_has_its_marks(void **state)
{
    struct bed *bed = *state;

    mfdb_close(open_update(bed));
    /* "MOEF" in ASCII */
    assert_int_equal(ask(bed->path, "PRAGMA application_id"), 0x4d4f4546);
    assert_int_equal(ask(bed->path, "PRAGMA user_version"), MFDB_SCHEMA);
    assert_int_equal(ask(bed->path, "SELECT count(*) FROM pragma_table_list"
                                    " WHERE type = 'table' AND NOT strict"
                                    " AND name NOT LIKE 'sqlite%'"),
        0);
    mfdb_close(open_update(bed));
    assert_int_equal(entries(bed->folder), 1);
}

static void a_newer_schema_is_refused(void **state)
{
    struct bed *bed = *state;

    mfdb_close(open_update(bed));
    change(bed->path, "PRAGMA user_version = 999");
    check_refused(bed, "schema 999");
}

static void a_database_of_others_is_refused(void **state)
{
    struct bed *bed = *state;

    change(bed->path, "CREATE TABLE run (id); INSERT INTO run VALUES (1)");
    check_refused(bed, "not a history");
}

/* Opening it for good would leave its -shm file behind. */
static void a_wal_database_of_others_is_left_alone(void **state)
{
    struct bed *bed = *state;

    change(bed->path, "PRAGMA journal_mode = WAL; CREATE TABLE t (id)");
    check_refused(bed, "not a history");
}

static void a_text_is_refused(void **state)
{
    struct bed *bed = *state;
    char text[2000];

    memset(text, 'x', sizeof text);
    file_write(bed->path, text, sizeof text);
    check_refused(bed, "not a history");
    file_write(bed->path, "x", 1);
    check_refused(bed, "not a history");
}

static void a_cut_database_is_refused(void **state)
{
    struct bed *bed = *state;
    struct mfdb_run run;
    struct bytes whole;
    mfdb *db = open_update(bed);
    struct mfdb_runs runs;

    run_make(&run, "done");
    run_save(bed, db, &run);
    mfdb_close(db);
    assert_int_equal(rmdir(bed->spools), 0);
    whole = file_read(bed->path);
    file_write(bed->path, whole.byte, 4096);
    check_refused(bed, "damaged");
    /* The table of runs overwritten: seen before anything is written. */
    memset(whole.byte + 4096, 0xa5, 4096);
    file_write(bed->path, whole.byte, whole.size);
    assert_null(mfdb_open(bed->path, MFDB_UPDATE, bed->err));
    assert_non_null(strstr(bed->err, "damaged"));
    assert_file_is(bed->path, whole);
    db = mfdb_open(bed->path, MFDB_QUERY, bed->err);
    if (db) {
        assert_int_equal(mfdb_list(db, NULL, &runs, bed->err), -1);
        assert_non_null(strstr(bed->err, "damaged"));
    }
    mfdb_close(db);
    assert_file_is(bed->path, whole);
    free(whole.byte);
}

static void a_missing_file_is_made_only_to_update(void **state)
{
    struct bed *bed = *state;
    char deep[400];
    mfdb *db;

    assert_null(mfdb_open(bed->path, MFDB_QUERY, bed->err));
    assert_int_equal(entries(bed->folder), 0);
    snprintf(deep, sizeof deep, "%s/a/b/h.db", bed->folder);
    db = mfdb_open(deep, MFDB_UPDATE, bed->err);
    assert_non_null(db);
    mfdb_close(db);
    db = mfdb_open(deep, MFDB_QUERY, bed->err);
    assert_non_null(db);
    mfdb_close(db);
}

static void odd_names_are_names_of_files(void **state)
{
    static const char *const names[] = {"a?mode=memory", "a#b", "100%41.db",
        "a b'c\"d.db", "sch\xc3\xb6n.db", ":memory:", "file:x.db"};
    struct bed *bed = *state;
    char here[4096];

    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(bed->folder), 0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        mfdb_close(mfdb_open(names[i], MFDB_UPDATE, bed->err));
        assert_true(file_exists(names[i]));
        mfdb *db = mfdb_open(names[i], MFDB_QUERY, bed->err);
        if (!db)
            fail_msg("%s", bed->err);
        mfdb_close(db);
    }
    assert_int_equal(entries("."), 7);
    assert_int_equal(chdir(here), 0);
}

static void what_is_no_file_is_refused(void **state)
{
    struct bed *bed = *state;

    assert_null(mfdb_open("", MFDB_UPDATE, bed->err));
    assert_null(mfdb_open(bed->folder, MFDB_UPDATE, bed->err));
    assert_non_null(strstr(bed->err, "not a file"));
    assert_null(mfdb_open("/dev/null", MFDB_UPDATE, bed->err));
}

static void an_empty_file_is_a_new_one(void **state)
{
    struct bed *bed = *state;

    file_write(bed->path, "", 0);
    assert_null(mfdb_open(bed->path, MFDB_QUERY, bed->err));
    mfdb_close(open_update(bed));
    assert_int_equal(ask(bed->path, "PRAGMA user_version"), MFDB_SCHEMA);
}

static void a_wal_file_of_ours_is_put_back(void **state)
{
    struct bed *bed = *state;

    mfdb_close(open_update(bed));
    change(bed->path, "PRAGMA journal_mode = WAL");
    mfdb_close(open_update(bed));
    assert_int_equal(ask(bed->path, "SELECT count(*) FROM pragma_journal_mode"
                                    " WHERE journal_mode = 'delete'"),
        1);
}

/* What a user that may not write sees: 0 as it should be. */
static int look_without_right_to_write(struct bed *bed, const char *run_id)
{
    struct mfdb_runs runs;
    struct mfdb_run run;
    mfdb *db;

    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
        return 2;
    if (mfdb_open(bed->path, MFDB_UPDATE, bed->err) ||
        !strstr(bed->err, "written"))
        return 3;
    db = mfdb_open(bed->path, MFDB_QUERY, bed->err);
    if (!db)
        return 4;
    if (mfdb_list(db, NULL, &runs, bed->err) != 0 || runs.count != 1)
        return 5;
    mfdb_runs_free(&runs);
    if (mfdb_find(db, run_id, &run, bed->err) != 0)
        return 6;
    if (mfdb_cache_put(db, "k", 1, bed->err) != -1)
        return 7;
    run_make_bare(&run);
    if (mfdb_spool_create(bed->spools, &run, bed->err))
        return 8;
    mfdb_close(db);
    return 0;
}

static void a_read_only_folder_answers(void **state)
{
    struct bed *bed = *state;
    struct mfdb_run run;
    mfdb *db = open_update(bed);
    int status;
    pid_t child;

    run_make(&run, "done");
    run_save(bed, db, &run);
    mfdb_close(db);
    assert_int_equal(rmdir(bed->spools), 0);
    assert_int_equal(chmod(bed->path, 0444), 0);
    assert_int_equal(chmod(bed->folder, 0555), 0);
    child = fork();
    if (child == 0)
        _exit(look_without_right_to_write(bed, run.run_id));
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(chmod(bed->folder, 0755), 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(entries(bed->folder), 1);
}

static void check_default(
    const char *db, const char *data, const char *home, const char *expected)
{
    char err[MFDB_ERROR_TEXT];
    char *path;

    assert_int_equal(
        db ? setenv("MOEFOLD_DB", db, 1) : unsetenv("MOEFOLD_DB"), 0);
    assert_int_equal(
        data ? setenv("XDG_DATA_HOME", data, 1) : unsetenv("XDG_DATA_HOME"), 0);
    assert_int_equal(home ? setenv("HOME", home, 1) : unsetenv("HOME"), 0);
    path = mfdb_default_path(err);
    if (expected)
        assert_string_equal(path, expected);
    else
        assert_null(path);
    free(path);
}

static void the_default_place_follows_the_environment(void **state)
{
    (void)state;
    check_default("/x/y", "/data", "/home/ada", "/x/y");
    check_default("", "/data", "/home/ada", "/data/moefold/history.db");
    check_default(NULL, "relative", "/home/ada",
        "/home/ada/.local/share/moefold/history.db");
    check_default(
        NULL, NULL, "/home/ada", "/home/ada/.local/share/moefold/history.db");
    check_default(NULL, NULL, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_new_file_has_its_marks),
        TEST(a_newer_schema_is_refused),
        TEST(a_database_of_others_is_refused),
        TEST(a_wal_database_of_others_is_left_alone),
        TEST(a_text_is_refused),
        TEST(a_cut_database_is_refused),
        TEST(a_missing_file_is_made_only_to_update),
        TEST(odd_names_are_names_of_files),
        TEST(what_is_no_file_is_refused),
        TEST(an_empty_file_is_a_new_one),
        TEST(a_wal_file_of_ours_is_put_back),
        TEST(a_read_only_folder_answers),
        cmocka_unit_test(the_default_place_follows_the_environment),
    };

    return cmocka_run_group_tests_name("open", tests, NULL, NULL);
}
