/*
 * auth_test.c -- secrets, tokens, Host headers.
 *
 * Method: cases with the answer they must get.  Signatures are tried by tests/clients/libsql.
 */
#include <string.h>

#include "server/auth.h"
#include "unit/cmocka_all.h"

static void
secrets_are_compared_whole(void **state)
{
    (void)state;
    assert_true(auth__same_secret(SLICE_LITERAL("abc"), SLICE_LITERAL("abc")));
    assert_false(auth__same_secret(SLICE_LITERAL("abc"), SLICE_LITERAL("abd")));
    assert_false(auth__same_secret(SLICE_LITERAL("abc"), SLICE_LITERAL("ab")));
    assert_false(auth__same_secret(SLICE_LITERAL("abcabc"), SLICE_LITERAL("abc")));
    assert_false(auth__same_secret(SLICE_LITERAL(""), SLICE_LITERAL("abc")));
    assert_false(auth__same_secret(SLICE_LITERAL("abc"), SLICE_LITERAL("")));
    assert_true(auth__same_secret(SLICE_LITERAL(""), SLICE_LITERAL("")));
}

static void
headers_carry_the_token(void **state)
{
    (void)state;
    ServerOptions options = {.token = "secret"};
    Auth *auth;
    ErrMsg msg = {0};
    assert_int_equal(auth__new(&options, &auth, &msg), OK);
    assert_true(auth__needed(auth));
    static const struct {
        const char *value;
        AuthResult result;
        const char *code;
    } cases[] = {
        {NULL, AUTH_MISSING, "AUTH_HTTP_HEADER_MISSING"},
        {"secret", AUTH_REJECTED, "AUTH_HTTP_HEADER_INVALID"},
        {"Basic secret", AUTH_REJECTED, "AUTH_HTTP_HEADER_UNSUPPORTED_SCHEME"},
        {"Bearer Secret", AUTH_REJECTED, "AUTH_JWT_INVALID"},
        {"Bearer secret2", AUTH_REJECTED, "AUTH_JWT_INVALID"},
        {"Bearer ", AUTH_MISSING, "AUTH_JWT_MISSING"},
        {"Bearer secret", AUTH_OK, NULL},
        {"bearer   secret", AUTH_OK, NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *value = cases[i].value != NULL ? cases[i].value : "";
        Trust trust = auth__header(auth, cases[i].value != NULL, SLICE(value, strlen(value)));
        assert_int_equal(trust.result, cases[i].result);
        if (cases[i].code != NULL) assert_string_equal(trust.code, cases[i].code);
    }
    auth__free(auth);
}

static void
keys_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        bool good;
    } cases[] = {
        {"zpRmrQgWzWH7wZ1CKs7zhdnRTCcYwDq6mcMYXrD4Pyo", true},
        {"zpRmrQgWzWH7wZ1CKs7zhdnRTCcYwDq6mcMYXrD4", false},
        {"", false},
        {"-----BEGIN PUBLIC KEY-----\nnonsense\n-----END PUBLIC KEY-----\n", false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ServerOptions options = {.jwt_key = cases[i].key};
        Auth *auth;
        ErrMsg msg = {0};
        assert_int_equal(auth__new(&options, &auth, &msg) == OK, cases[i].good);
        if (auth != NULL) {
            static const char *const tokens[] = {"a",  "a.b",         "a.b.c",
                                                 "..", "e30.e30.e30", "eyJhbGciOiJub25lIn0.e30."};
            for (size_t k = 0; k < COUNT_OF(tokens); k++) {
                Trust trust = auth__token(auth, SLICE(tokens[k], strlen(tokens[k])));
                assert_int_equal(trust.result, AUTH_REJECTED);
            }
        }
        auth__free(auth);
        err_clear(&msg);
    }
}

static void
names_of_this_machine(void **state)
{
    (void)state;
    static const char *const good[] = {"localhost",  "localhost:80",   "LocalHost",
                                       "127.0.0.1",  "127.0.0.1:8080", "[::1]",
                                       "[::1]:7432", "db.localhost:1"};
    static const char *const bad[] = {"evil.example",
                                      "localhost.evil.example",
                                      "127.0.0.1.nip.io",
                                      "127.0.0.2x",
                                      "",
                                      "notlocalhost",
                                      "10.0.0.1",
                                      "[::2]",
                                      "localhost:80:80"};
    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_true(auth__host_is_local(SLICE(good[i], strlen(good[i]))));
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(auth__host_is_local(SLICE(bad[i], strlen(bad[i]))));
}

static void
database_names(void **state)
{
    (void)state;
    static const char *const good[] = {"a", "app", "my-db_2", "0"};
    static const char *const bad[] = {
        "",
        "..",
        "a/b",
        "A",
        "-a",
        "a.b",
        "a\\b",
        "x y",
        ("0123456789012345678901234567890123456789012345678901234567890"
         "123456789")};
    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_true(db__name_ok(SLICE(good[i], strlen(good[i]))));
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(db__name_ok(SLICE(bad[i], strlen(bad[i]))));
}

static void
read_only_transactions(void **state)
{
    (void)state;
    static const struct {
        const char *sql;
        bool read_only;
    } cases[] = {
        {"BEGIN TRANSACTION READONLY", true},
        {" begin readonly ; ", true},
        {"BEGIN DEFERRED TRANSACTION READONLY", true},
        {"BEGIN", false},
        {"BEGIN IMMEDIATE", false},
        {"BEGIN READONLYX", false},
        {"BEGINREADONLY", false},
        {"BEGIN READONLY; SELECT 1", false},
        {"SELECT 1", false},
        {"", false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        bool read_only;
        Slice sql = SLICE(cases[i].sql, strlen(cases[i].sql));
        Slice got = seat__begin_text(sql, &read_only);
        assert_int_equal(read_only, cases[i].read_only);
        if (!read_only) assert_ptr_equal(got.p, sql.p);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secrets_are_compared_whole),
        cmocka_unit_test(headers_carry_the_token),
        cmocka_unit_test(keys_are_checked),
        cmocka_unit_test(names_of_this_machine),
        cmocka_unit_test(database_names),
        cmocka_unit_test(read_only_transactions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
