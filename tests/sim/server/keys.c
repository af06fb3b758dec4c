/*
 * keys.c -- signing, and OpenSSL's memory.
 */
#include "keys.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt/sim/sim.h"
#include "rt/time.h"
#include "value/base64.h"

/* ---- memory ---- */

/* In front of each block: a list of all. */
typedef struct Block {
    struct Block *next, *prev;
} Block;
static Block blocks = {&blocks, &blocks};

static void *
block_link(Block *block)
{
    if (block == NULL) return NULL;
    *block = (Block){blocks.next, &blocks};
    blocks.next->prev = block;
    blocks.next = block;
    return block + 1;
}

static Block *
block_unlink(void *pointer)
{
    if (pointer == NULL) return NULL;
    Block *block = (Block *)pointer - 1;
    block->next->prev = block->prev;
    block->prev->next = block->next;
    return block;
}

static void *
crypto_malloc(size_t bytes, const char *file, int line)
{
    (void)file;
    (void)line;
    return block_link(malloc(sizeof(Block) + bytes));
}

static void
crypto_free(void *pointer, const char *file, int line)
{
    (void)file;
    (void)line;
    free(block_unlink(pointer));
}

static void *
crypto_realloc(void *pointer, size_t bytes, const char *file, int line)
{
    if (bytes == 0) {
        crypto_free(pointer, file, line);
        return NULL;
    }
    return block_link(realloc(block_unlink(pointer), sizeof(Block) + bytes));
}

/* ---- keys ---- */

static EVP_PKEY *key;
static char public_text[64];

static void
must(bool good, const char *what)
{
    if (good) return;
    fprintf(stderr, "OpenSSL: %s\n", what);
    abort();
}

void
keys_init(void)
{
    static const u8 secret[32] = "not a secret, but always the sam";
    u8 raw[32];
    size_t bytes = sizeof(raw);
    Buf text = {0};
    if (key != NULL) return;
    must(CRYPTO_set_mem_functions(crypto_malloc, crypto_realloc, crypto_free) == 1, "memory");
    key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, secret, sizeof(secret));
    must(key != NULL && EVP_PKEY_get_raw_public_key(key, raw, &bytes) == 1, "the key");
    must(base64_encode(SLICE(raw, bytes), true, &text) == OK, "the key as text");
    must(text.bytes < sizeof(public_text), "the key's length");
    memcpy(public_text, text.p, text.bytes);
    buf_free(&text);
}

const char *
keys_public(void)
{
    return public_text;
}

/* ---- tokens ---- */

/* base64url without padding, appended to a text. */
static void
part_add(char *text, const void *bytes, size_t count)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const u8 *p = bytes;
    char *to = text + strlen(text);
    u32 value = 0, bits = 0;
    for (size_t i = 0; i < count; i++) {
        value = (value << 8 | p[i]) & 0xffff;
        for (bits += 8; bits >= 6; bits -= 6)
            *to++ = digits[value >> (bits - 6) & 63];
    }
    if (bits > 0) *to++ = digits[value << (6 - bits) & 63];
    *to = 0;
}

static void
sign(const char *text, u8 signature_out[64])
{
    size_t bytes = 64;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    must(context != NULL && EVP_DigestSignInit(context, NULL, NULL, NULL, key) == 1 &&
             EVP_DigestSign(context, signature_out, &bytes, (const u8 *)text, strlen(text)) == 1,
         "signing");
    EVP_MD_CTX_free(context);
}

static void
jwt_make(TokenKind kind, const char *claims, char text_out[TOKEN_TEXT_MAX])
{
    static const char eddsa[] = "{\"alg\":\"EdDSA\",\"typ\":\"JWT\"}",
                      none[] = "{\"alg\":\"none\"}";
    char wrong[160];
    u8 signature[64] = {0};
    const char *head = kind == TOKEN_NO_ALG ? none : eddsa;
    text_out[0] = 0;
    part_add(text_out, head, strlen(head));
    strcat(text_out, ".");
    size_t at = strlen(text_out);
    part_add(text_out, claims, strlen(claims));
    sign(text_out, signature);
    if (kind == TOKEN_FORGED) { /* The signature of other claims. */
        snprintf(wrong, sizeof(wrong), "%s ", claims);
        text_out[at] = 0;
        part_add(text_out, wrong, strlen(wrong));
    }
    strcat(text_out, ".");
    if (kind != TOKEN_NO_ALG) part_add(text_out, signature, sizeof(signature));
}

void
token_make(TokenKind kind, const char *db, char text_out[TOKEN_TEXT_MAX], i64 *dies_out)
{
    char claims[150];
    const i64 second = (i64)RT_NS_PER_S;
    i64 now_s = rt_wall_ns() / second, until_s = now_s + 100000000;
    if (kind == TOKEN_SHORT) until_s = now_s + (i64)(TOKEN_SHORT_NS / RT_NS_PER_S);
    if (kind == TOKEN_EXPIRED) until_s = now_s - (i64)rt_sim_draw(3);
    *dies_out = kind == TOKEN_STATIC ? INT64_MAX : until_s * second;
    if (kind == TOKEN_STATIC || kind == TOKEN_MISSING) {
        snprintf(text_out, TOKEN_TEXT_MAX, "%s", kind == TOKEN_STATIC ? STATIC_TOKEN : "");
        return;
    }
    if (kind == TOKEN_WRONG) {
        static const char *const wrong[] = {"x", STATIC_TOKEN "x", "a.b.c", "..", "Bearer"};
        snprintf(text_out, TOKEN_TEXT_MAX, "%s", wrong[rt_sim_draw(COUNT_OF(wrong))]);
        return;
    }
    i64 from_s = kind == TOKEN_IMMATURE ? now_s + 90000000 : now_s - 10;
    int bytes = snprintf(claims, sizeof(claims), "{\"a\":\"%s\",\"exp\":%lld,\"nbf\":%lld",
                         kind == TOKEN_READS ? "ro" : "rw", (long long)until_s, (long long)from_s);
    if (kind == TOKEN_OF_ONE || kind == TOKEN_ELSEWHERE)
        bytes += snprintf(claims + bytes, sizeof(claims) - (size_t)bytes, ",\"id\":\"%s%s\"", db,
                          kind == TOKEN_OF_ONE ? "" : "x");
    snprintf(claims + bytes, sizeof(claims) - (size_t)bytes, "}");
    jwt_make(kind, claims, text_out);
}
