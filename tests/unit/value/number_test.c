/*
 * number_test.c -- text of numbers and numbers from text.
 *
 * Method: values recorded from SQLite 3.54.1; random reals must read back from their text; the
 * grammar of numbers by a table of texts; a locale with a decimal comma changes nothing because no
 * C library call is made.
 */
#include "unit/cmocka_all.h"
#include "value/number.h"

static const struct {
    f64 r;
    const char *text;
} RECORDED[] = {
    {0x1.5555555555555p-2, "0.33333333333333332"},
    {0x0.0000000000001p-1022, "4.9406564584124654e-324"},
    {0x1.999999999999ap-4, "0.1"},
    {0x1.b1ae4d6e2ef50p+69, "1.0e+21"},
    {-0x0.0p+0, "0.0"},
    {0x0.0p+0, "0.0"},
    {0x1.0000000000000p+0, "1.0"},
    {-0x1.8000000000000p+0, "-1.5"},
    {0x1.9000000000000p+6, "100.0"},
    {0x1.c6bf526340000p+49, "1000000000000000.0"},
    {0x1.1c37937e08000p+53, "10000000000000000.0"},
    {0x1.6345785d8a000p+56, "1.0e+17"},
    {0x1.b69b4ba630f35p+56, "1.2345678901234568e+17"},
    {0x1.0000000000000p+53, "9007199254740992.0"},
    {0x1.a36e2eb1c432dp-14, "0.0001"},
    {0x1.4f8b588e368f1p-17, "1.0e-05"},
    {0x1.02e4b6ce5dc68p-13, "0.00012345"},
    {0x1.fffffffffffffp+1023, "1.7976931348623157e+308"},
    {0x1.0000000000000p-1022, "2.2250738585072014e-308"},
    {0x1.8bc28f5c28f5cp+5, "49.47"},
    {0x1.3333333333333p-2, "0.3"},
    {0x1.3333333333334p-2, "0.30000000000000004"},
    {0x1.5555555555555p-1, "0.66666666666666663"},
    {0x1.249ad2594c37dp+332, "1.0e+100"},
    {0x1.52d02c7e14af6p+76, "1.0e+23"},
    {0x1.52d02c7e14af6p+76, "1.0e+23"},
    {0x1.e240c9fbe76c9p+16, "123456.789"},
    {0x1.921fb54442d11p+1, "3.14159265358979"},
    {0x1.0f0cf064dd592p+73, "1.0e+22"},
    {0x0.0000000002788p-1022, "4.999944335913415e-320"},
    {__builtin_inf(), "Inf"},
    {-__builtin_inf(), "-Inf"},
    {0x1.6345785d89fffp+56, "99999999999999984.0"},
    {0x1.fffffffffffffp-1, "0.99999999999999989"},
    {0x1.0000000000001p+0, "1.0000000000000002"},
    {0x1.1666666666666p+2, "4.35"},
    {0x1.2d687e3df2180p+20, "1234567.8901234567"},
    {0x1.4d8399f767c45p+23, "10928588.983213553"},
    {0x1.8fbbcbde5c099p+445, "1.4186613525849614e+134"},
    {-0x1.11fdecb91ce37p-243, "-7.5719685560558675e-74"},
    {-0x1.d4330f1446beap+375, "-1.4074705188261364e+113"},
    {-0x1.b8c9ebd69fe29p-401, "-3.3339745473042614e-121"},
    {-0x1.0b125ec1d7da0p-900, "-1.2342180766211395e-271"},
    {-0x1.10dff076ce2efp+371, "-5.1268640042449351e+111"},
    {-0x1.5387777330bdbp+107, "-2.1520217579844227e+32"},
    {0x1.1ea36f17fd374p-3, "0.1399601630397701"},
    {0x1.64138a6233255p-811, "1.01853664031722e-244"},
    {0x1.7688de6a16a3bp-381, "2.9704598186234577e-115"},
    {0x1.dd97f1cfb10f6p+499, "3.0534183338726823e+150"},
    {-0x1.271007814e8a2p+486, "-2.3027782228163463e+146"},
    {0x1.959ce3f1f65a8p+536, "3.5640962116365598e+161"},
    {0x1.afe878b33e968p-606, "6.3529290172074526e-183"},
    {0x1.4235992edcf45p-2, "0.31465758656053239"},
    {-0x1.edb20035b7399p-77, "-1.2761724801771812e-23"},
    {0x1.c966c377b9aa2p+648, "2.0868668176225336e+195"},
    {0x1.c82b1478c281dp-278, "3.6689882774570399e-84"},
    {-0x1.1cc9dea959c21p+482, "-1.389122273370197e+145"},
    {0x1.229f1c4069545p+572, "1.7548715433165102e+172"},
    {-0x1.d8b7628dbd25ep+49, "-1039514241563211.8"},
    {0x1.a1e48cc11d357p-729, "5.7804021771411506e-220"},
    {-0x1.0691c238642eap-540, "-2.8497478716107576e-163"},
    {0x1.0c07e9e115e4bp+799, "3.4906913921247447e+240"},
    {0x1.a8978206f5c66p-482, "1.3282314387596086e-145"},
    {-0x1.b18b900745130p+911, "-2.9317061175715426e+274"},
    {0x1.c33b2df1461aap-1002, "4.1124768973349897e-302"},
    {-0x1.a3cab359eeefbp+97, "-2.5983853818656714e+29"},
    {-0x1.ae3bf3729c619p+861, "-2.5839922981649337e+259"},
};

static void
reals_print_as_recorded(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(RECORDED); i++) {
        char text[NUMBER_TEXT_BYTES + 1];
        text[number_put_real(text, RECORDED[i].r)] = 0;
        assert_string_equal(text, RECORDED[i].text);
    }
}

static void
reals_read_back_from_their_text(void **state)
{
    (void)state;
    Rng rng;
    rng_seed(&rng, 11);
    for (u32 i = 0; i < 200000; i++) {
        u64 bits = rng_next(&rng);
        f64 r, back;
        memcpy(&r, &bits, sizeof(r));
        if (r - r != 0.0) continue;
        char text[NUMBER_TEXT_BYTES];
        size_t bytes = number_put_real(text, r);
        assert_true(bytes <= NUMBER_TEXT_BYTES);
        NumberScan scan = number_scan(SLICE(text, bytes));
        back = scan.r;
        assert_true(back == r);
        assert_true(scan.whole);
        assert_int_equal(scan.kind, NUMBER_REAL);
    }
}

static void
integers_print_and_read_back(void **state)
{
    (void)state;
    Rng rng;
    rng_seed(&rng, 12);
    for (u32 i = 0; i < 100000; i++) {
        i64 v = (i64)(rng_next(&rng) >> rng_below(&rng, 64));
        if (i % 2) v = (i64)(0 - (u64)v);
        if (i == 0) v = I64_MIN;
        if (i == 1) v = I64_MAX;
        if (i == 2) v = 0;
        char text[NUMBER_TEXT_BYTES];
        size_t bytes = number_put_int(text, v);
        NumberScan scan = number_scan(SLICE(text, bytes));
        assert_int_equal(scan.kind, NUMBER_INT);
        assert_true(scan.i == v && scan.whole && scan.bytes == bytes);
        assert_true(number_int_prefix(SLICE(text, bytes)) == v);
    }
}

static void
scans_follow_the_grammar(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t bytes;
        u8 kind;
        bool whole;
        size_t used;
        i64 i;
        f64 r;
    } cases[] = {
        {"", 0, NUMBER_NONE, false, 0, 0, 0},
        {"-", 1, NUMBER_NONE, false, 0, 0, 0},
        {".", 1, NUMBER_NONE, false, 0, 0, 0},
        {"abc", 3, NUMBER_NONE, false, 0, 0, 0},
        {" 12 ", 4, NUMBER_INT, true, 3, 12, 12},
        {"\t-7\n", 4, NUMBER_INT, true, 3, -7, -7},
        {"+5x", 3, NUMBER_INT, false, 2, 5, 5},
        {"1.", 2, NUMBER_REAL, true, 2, 0, 1},
        {".5", 2, NUMBER_REAL, true, 2, 0, 0.5},
        {"1e", 2, NUMBER_INT, false, 1, 1, 1},
        {"1e+", 3, NUMBER_INT, false, 1, 1, 1},
        {"1e2", 3, NUMBER_REAL, true, 3, 0, 100},
        {"1.5e-1z", 7, NUMBER_REAL, false, 6, 0, 0.15},
        {"0x10", 4, NUMBER_INT, false, 1, 0, 0},
        {"9223372036854775807", 19, NUMBER_INT, true, 19, I64_MAX, 9223372036854775807.0},
        {"9223372036854775808", 19, NUMBER_REAL, true, 19, 0, 9223372036854775808.0},
        {"-9223372036854775808", 20, NUMBER_INT, true, 20, I64_MIN, -9223372036854775808.0},
        {"-9223372036854775809", 20, NUMBER_REAL, true, 20, 0, -9223372036854775808.0},
        {"00000000000000000000000000001", 29, NUMBER_INT, true, 29, 1, 1},
        {"1e999", 5, NUMBER_REAL, true, 5, 0, (f64)__builtin_inff()},
        {"1e-999", 6, NUMBER_REAL, true, 6, 0, 0},
        {"12\0ab", 5, NUMBER_INT, true, 2, 12, 12},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        NumberScan scan = number_scan(SLICE(cases[i].text, cases[i].bytes));
        assert_int_equal(scan.kind, cases[i].kind);
        assert_int_equal(scan.whole, cases[i].whole);
        assert_int_equal(scan.bytes, cases[i].used);
        if (scan.kind == NUMBER_INT) assert_true(scan.i == cases[i].i);
        assert_true(scan.r == cases[i].r);
    }
    assert_true(number_scan(SLICE_LITERAL("12\0ab")).nul);
    assert_true(number_int_prefix(SLICE_LITERAL("99999999999999999999")) == I64_MAX);
    assert_true(number_int_prefix(SLICE_LITERAL(" -99999999999999999999x")) == I64_MIN);
    assert_true(number_int_prefix(SLICE_LITERAL("1e3")) == 1);
}

static void
literals_are_read(void **state)
{
    (void)state;
    bool is_int;
    i64 i;
    f64 r;
    assert_true(number_literal(SLICE_LITERAL("0xFFFFFFFFFFFFFFFF"), &is_int, &i, &r));
    assert_true(is_int && i == -1);
    assert_false(number_literal(SLICE_LITERAL("0x1FFFFFFFFFFFFFFFF"), &is_int, &i, &r));
    assert_true(number_literal(SLICE_LITERAL("0x00000000000000000001"), &is_int, &i, &r));
    assert_true(is_int && i == 1);
    assert_true(number_literal(SLICE_LITERAL("1_000"), &is_int, &i, &r));
    assert_true(is_int && i == 1000);
    assert_true(number_literal(SLICE_LITERAL("1_0.5_0e1_0"), &is_int, &i, &r));
    assert_true(!is_int && r == 10.5e10);
    assert_true(number_literal(SLICE_LITERAL("9223372036854775808"), &is_int, &i, &r));
    assert_true(!is_int && r == 9223372036854775808.0);
    assert_false(number_literal(SLICE_LITERAL("12a"), &is_int, &i, &r));
    assert_false(number_literal(SLICE_LITERAL(""), &is_int, &i, &r));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reals_print_as_recorded),
        cmocka_unit_test(reals_read_back_from_their_text),
        cmocka_unit_test(integers_print_and_read_back),
        cmocka_unit_test(scans_follow_the_grammar),
        cmocka_unit_test(literals_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
