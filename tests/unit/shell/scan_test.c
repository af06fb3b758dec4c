/*
 * scan_test.c -- statements end where they should, however the text is cut into pieces.
 *
 * Method: texts with their ends marked by '^' right after the closing semicolon; each is fed whole
 * and then in pieces of every size; the places found must be those marked.
 */
#include "shell/scan.h"

#include "unit/cmocka_all.h"

static const char *const marked[] = {
    "SELECT 1;^",
    "SELECT 1;^SELECT 2;^",
    "SELECT ';' , \";\" , `;` , [;] ;^",
    "SELECT 'it''s;' ;^",
    "-- comment ;\nSELECT 1;^",
    "/* ; */ SELECT /* ; ** / */ 1;^",
    "/*/;*/;^",
    "SELECT a-b, a/b; ^",
    "SELECT 1 - - 1;^",
    "SELECT 1 --;\n;^",
    "SELECT '--', '/*';^ SELECT '*/';^",
    ";^;^",
    "CREATE TABLE t(trigger, end);^",
    "CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT 1; SELECT 2; END;^",
    "CREATE TEMP TRIGGER r AFTER INSERT ON t BEGIN SELECT ';end;'; END ;^SELECT 1;^",
    "create temporary trigger r begin select case when 1 then 2 end; end;^",
    "explain query plan CREATE TRIGGER r BEGIN SELECT 1;END;^",
    "CREATE TRIGGER r BEGIN SELECT 1; endx; END; ^",
    "CREATE /* c */ TRIGGER r BEGIN SELECT 1; -- end;\n END;^",
    "SELECT 'open ; ",
    "SELECT 1 /* ; ",
    "SELECT \"x;",
};

/* Take the marks out; returns how many, with their places. */
static size_t
unmark(const char *text, char *plain, size_t *place)
{
    size_t bytes = 0, count = 0;
    for (; *text != 0; text++) {
        if (*text == '^') {
            place[count++] = bytes;
            continue;
        }
        plain[bytes++] = *text;
    }
    plain[bytes] = 0;
    return count;
}

static void
check(const char *text, size_t piece)
{
    char plain[256];
    size_t place[16], found = 0, bytes = 0;
    size_t wanted = unmark(text, plain, place);
    bytes = strlen(plain);
    Scan scan = {0};
    for (size_t at = 0; at < bytes;) {
        size_t used = 0, give = piece < bytes - at ? piece : bytes - at;
        bool ended = scan_feed(&scan, SLICE(plain + at, give), &used);
        at += used;
        if (!ended) continue;
        assert_true(found < wanted);
        /* A blank between semicolon and mark belongs to the mark. */
        size_t here = place[found];
        while (here > 0 && plain[here - 1] == ' ')
            here--;
        assert_int_equal(at, here);
        found++;
    }
    assert_int_equal(found, wanted);
}

static void
ends_are_found_in_pieces_of_every_size(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(marked); i++)
        for (size_t piece = 1; piece <= strlen(marked[i]); piece++)
            check(marked[i], piece);
}

static void
blank_means_nothing_to_run(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool blank;
    } cases[] = {
        {"", true},        {" \n\t", true},   {"-- x\n", true},    {"/* x */", true},
        {"-- open", true}, {"/* open", true}, {"x", false},        {"1", false},
        {"'", false},      {"(", false},      {"SELECT 1;", true}, {"SELECT 1; 2", false},
        {" - 1", false},   {"\"", false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Scan scan = {0};
        size_t used = 0, at = 0, bytes = strlen(cases[i].text);
        while (at < bytes) {
            (void)scan_feed(&scan, SLICE(cases[i].text + at, bytes - at), &used);
            at += used;
        }
        assert_true(scan_is_blank(&scan) == cases[i].blank);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_are_found_in_pieces_of_every_size),
        cmocka_unit_test(blank_means_nothing_to_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
