/*
 * auth.c -- tokens.
 *
 * A JWT is header.payload.signature, each base64url.  The algorithm is fixed by our key (EdDSA), so
 * the header is only checked for it.  Claims: exp, nbf (seconds), a ("ro" or "rw"), id (the
 * database it is for).
 */
#include "server/auth.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <string.h>

#include "rt/time.h"
#include "value/base64.h"
#include "value/json.h"

#define TOKEN_BYTES_MAX ((size_t)8 << 10)
#define ED25519_BYTES   32

struct Auth {
    const char *token; /* NULL: none. */
    EVP_PKEY *key;     /* NULL: no JWT. */
};

bool
auth__same_secret(Slice a, Slice b)
{
    u8 different = a.bytes != b.bytes;
    for (size_t i = 0; i < a.bytes && b.bytes > 0; i++)
        different = (u8)(different | (a.p[i] ^ b.p[i % b.bytes]));
    return different == 0;
}

/* ---- the key ---- */

static EVP_PKEY *
key_read(const char *text)
{
    EVP_PKEY *key = NULL;
    if (strstr(text, "-----BEGIN") != NULL) {
        BIO *bio = BIO_new_mem_buf(text, (int)strlen(text));
        if (bio != NULL) key = PEM_read_bio_PUBKEY(bio, NULL, NULL, NULL);
        BIO_free(bio);
    } else {
        Buf raw = {0};
        if (base64_decode(SLICE(text, strlen(text)), &raw) == OK && raw.bytes == ED25519_BYTES)
            key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, raw.p, raw.bytes);
        buf_free(&raw);
    }
    if (key != NULL && EVP_PKEY_id(key) != EVP_PKEY_ED25519) {
        EVP_PKEY_free(key);
        key = NULL;
    }
    ERR_clear_error();
    return key;
}

Err
auth__new(const ServerOptions *options, Auth **auth_out, ErrMsg *msg)
{
    *auth_out = NULL;
    Auth *auth = MEM_NEW(Auth);
    if (auth == NULL) return err_set(msg, ERR_NOMEM, NULL);
    auth->token = options->token;
    if (options->jwt_key != NULL) {
        auth->key = key_read(options->jwt_key);
        if (auth->key == NULL) {
            mem_free(auth);
            return err_set(msg, ERR_MISUSE,
                           "the JWT key is no Ed25519 public key (PEM, or 32 bytes in base64)");
        }
    }
    *auth_out = auth;
    return OK;
}

void
auth__free(Auth *auth)
{
    if (auth == NULL) return;
    EVP_PKEY_free(auth->key);
    mem_free(auth);
}

bool
auth__needed(const Auth *auth)
{
    return auth->token != NULL || auth->key != NULL;
}

/* ---- JWT ---- */

static Trust
no_trust(AuthResult result, const char *code, const char *text)
{
    return (Trust){.result = result, .code = code, .text = text};
}

static bool
signature_good(EVP_PKEY *key, Slice text, Slice signature)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool good = context != NULL && EVP_DigestVerifyInit(context, NULL, NULL, NULL, key) == 1 &&
                EVP_DigestVerify(context, signature.p, signature.bytes, text.p, text.bytes) == 1;
    EVP_MD_CTX_free(context);
    ERR_clear_error();
    return good;
}

/* One base64url part as a JSON object in the arena.  Errors: ERR_SQL (it is none), ERR_NOMEM. */
static Err
part_json(Slice part, Arena *arena, Buf *scratch, const JsonNode **root_out)
{
    JsonLimits limits = {.depth_max = 16, .nodes_max = 1000};
    JsonNode *root = NULL;
    buf_clear(scratch);
    Err err = base64_decode(part, scratch);
    if (err == OK) err = json_parse(buf_slice(scratch), &limits, true, arena, &root, NULL);
    if (err != OK) return err == ERR_NOMEM ? ERR_NOMEM : ERR_SQL;
    *root_out = root;
    return root->type == JSON_OBJECT ? OK : ERR_SQL;
}

static Trust
claims_judge(const JsonNode *claims)
{
    Trust trust = {.result = AUTH_OK};
    f64 seconds, now = (f64)(rt_wall_ns() / (i64)RT_NS_PER_S);
    Slice text;
    if (json_get_number(json_member(claims, "exp"), &seconds) && now >= seconds && !PLANT(214))
        return no_trust(AUTH_EXPIRED, "AUTH_JWT_EXPIRED", "the token has expired");
    if (json_get_number(json_member(claims, "nbf"), &seconds) && now < seconds)
        return no_trust(AUTH_IMMATURE, "AUTH_JWT_IMMATURE", "the token is not valid yet");
    if (json_get_text(json_member(claims, "a"), &text))
        trust.read_only = !slice_equal(text, SLICE_LITERAL("rw"));
    if (json_get_text(json_member(claims, "id"), &text)) {
        if (!db__name_ok(text))
            return no_trust(AUTH_REJECTED, "AUTH_JWT_INVALID", "the token names no database");
        memcpy(trust.database, text.p, text.bytes);
    }
    return trust;
}

static Trust
jwt_judge(EVP_PKEY *key, Slice token)
{
    Trust trust = no_trust(AUTH_REJECTED, "AUTH_JWT_INVALID", "the token is not valid");
    const u8 *first = memchr(token.p, '.', token.bytes);
    if (first == NULL) return trust;
    size_t left = token.bytes - (size_t)(first + 1 - token.p);
    const u8 *second = memchr(first + 1, '.', left);
    if (second == NULL) return trust;
    const u8 *end = token.p + token.bytes;
    Slice head = SLICE(token.p, (size_t)(first - token.p));
    Slice body = SLICE(first + 1, (size_t)(second - first - 1));
    Slice sign = SLICE(second + 1, (size_t)(end - second - 1));
    Arena arena;
    Buf scratch = {0};
    const JsonNode *header = NULL, *claims = NULL;
    Slice algorithm;
    arena_init(&arena, NULL);
    Err err = base64_decode(sign, &scratch);
    if (err == OK &&
        !signature_good(key, SLICE(token.p, (size_t)(second - token.p)), buf_slice(&scratch)))
        err = ERR_SQL;
    if (err == OK) err = part_json(head, &arena, &scratch, &header);
    if (err == OK && (!json_get_text(json_member(header, "alg"), &algorithm) ||
                      !slice_equal(algorithm, SLICE_LITERAL("EdDSA"))))
        err = ERR_SQL;
    if (err == OK) err = part_json(body, &arena, &scratch, &claims);
    if (err == OK) trust = claims_judge(claims);
    if (err == ERR_NOMEM) trust = no_trust(AUTH_NOMEM, "SQLITE_NOMEM", "out of memory");
    buf_free(&scratch);
    arena_free(&arena);
    return trust;
}

/* ---- judging ---- */

SeatRights
auth__rights(const Trust *trust)
{
    return (SeatRights){.read_only = trust->read_only, .one_database = trust->database[0] != 0};
}

Trust
auth__token(const Auth *auth, Slice token)
{
    if (!auth__needed(auth)) return (Trust){.result = AUTH_OK};
    if (token.bytes == 0) return no_trust(AUTH_MISSING, "AUTH_JWT_MISSING", "a token is needed");
    if (token.bytes > TOKEN_BYTES_MAX)
        return no_trust(AUTH_REJECTED, "AUTH_JWT_INVALID", "the token is too long");
    if (auth->token != NULL && auth__same_secret(token, SLICE(auth->token, strlen(auth->token))))
        return (Trust){.result = AUTH_OK};
    if (auth->key != NULL) return jwt_judge(auth->key, token);
    return no_trust(AUTH_REJECTED, "AUTH_JWT_INVALID", "wrong token");
}

Trust
auth__header(const Auth *auth, bool given, Slice value)
{
    if (!auth__needed(auth)) return (Trust){.result = AUTH_OK};
    if (!given)
        return no_trust(AUTH_MISSING, "AUTH_HTTP_HEADER_MISSING",
                        "an Authorization header is needed");
    size_t bytes = 0;
    while (bytes < value.bytes && value.p[bytes] != ' ')
        bytes++;
    if (bytes == value.bytes)
        return no_trust(AUTH_REJECTED, "AUTH_HTTP_HEADER_INVALID",
                        "the Authorization header has no token");
    if (!slice_equal_nocase(SLICE(value.p, bytes), SLICE_LITERAL("bearer")))
        return no_trust(AUTH_REJECTED, "AUTH_HTTP_HEADER_UNSUPPORTED_SCHEME",
                        "the Authorization header must be: Bearer TOKEN");
    while (bytes < value.bytes && value.p[bytes] == ' ')
        bytes++;
    return auth__token(auth, SLICE(value.p + bytes, value.bytes - bytes));
}

static bool
ends_with(Slice text, Slice end)
{
    return text.bytes >= end.bytes &&
           slice_equal_nocase(SLICE(text.p + text.bytes - end.bytes, end.bytes), end);
}

bool
auth__host_is_local(Slice host)
{
    /* Cut the port off; an IPv6 address stands in brackets. */
    size_t at = host.bytes;
    while (at > 0 && host.p[at - 1] >= '0' && host.p[at - 1] <= '9')
        at--;
    if (at > 0 && at < host.bytes && host.p[at - 1] == ':') host.bytes = at - 1;
    return slice_equal_nocase(host, SLICE_LITERAL("localhost")) ||
           ends_with(host, SLICE_LITERAL(".localhost")) ||
           slice_equal(host, SLICE_LITERAL("127.0.0.1")) ||
           slice_equal(host, SLICE_LITERAL("[::1]"));
}
