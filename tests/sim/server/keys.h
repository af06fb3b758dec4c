/*
 * keys.h -- tokens that a server with keys_public() and STATIC_TOKEN takes, and such that it does
 * not.
 *
 * OpenSSL's own memory lies outside the simulated heaps; what a crashed process leaves of it
 * stays reachable until the program ends, so that leak checks see real leaks only.
 */
#pragma once

#include "base/base.h"

#define STATIC_TOKEN   "the-token-of-the-server"
#define TOKEN_TEXT_MAX 400u
#define TOKEN_SHORT_NS ((u64)2 * 1000 * 1000 * 1000) /* Life of TOKEN_SHORT. */

typedef enum TokenKind {
    TOKEN_STATIC,
    TOKEN_SIGNED,
    TOKEN_OF_ONE, /* Good for one database. */
    TOKEN_READS,  /* Good for reading. */
    TOKEN_SHORT,  /* Good for a moment. */
    TOKENS_GOOD,
    TOKEN_MISSING = TOKENS_GOOD,
    TOKEN_WRONG,
    TOKEN_FORGED, /* The claims were changed after it was signed. */
    TOKEN_NO_ALG, /* Says that it needs no signature. */
    TOKEN_EXPIRED,
    TOKEN_IMMATURE,
    TOKEN_ELSEWHERE, /* Good for another database. */
    TOKENS
} TokenKind;

/* Once, before anything runs. */
void keys_init(void);
/* Of the signatures, for ServerOptions.jwt_key. */
const char *keys_public(void);
/* For database `db`; *dies_out: wall time from which on it is no longer good. */
void token_make(TokenKind kind, const char *db, char text_out[TOKEN_TEXT_MAX], i64 *dies_out);
