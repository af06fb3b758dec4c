/*
 * auth.h -- who may use the server: a fixed token, or tokens signed with a key (JWT, EdDSA).
 */
#pragma once

#include "server/seat.h"

typedef struct Auth Auth;

typedef enum AuthResult {
    AUTH_OK,
    AUTH_MISSING,  /* Nothing was given. */
    AUTH_REJECTED, /* Not the token, no such scheme, a bad signature. */
    AUTH_EXPIRED,
    AUTH_IMMATURE,
    AUTH_ELSEWHERE, /* Good, but for another database. */
    AUTH_NOMEM      /* Nothing is known of the token. */
} AuthResult;

typedef struct Trust {
    AuthResult result;
    const char *code; /* "AUTH_JWT_EXPIRED"; NULL: OK. */
    const char *text;
    bool read_only;
    char database[DB_NAME_BYTES]; /* The only one that the token is for; "": any. */
} Trust;

MUST_CHECK Err auth__new(const ServerOptions *options, Auth **auth_out, ErrMsg *msg);
void auth__free(Auth *auth); /* NULL allowed. */
/* Does anything have to be shown at all? */
bool auth__needed(const Auth *auth);
SeatRights auth__rights(const Trust *trust);
/* Judge a token. */
Trust auth__token(const Auth *auth, Slice token);
/* Judge the value of an Authorization header; `given` false: there was none. */
Trust auth__header(const Auth *auth, bool given, Slice value);
/* Equal, in a time that does not depend on where they differ. */
bool auth__same_secret(Slice a, Slice b);
/* A Host header that no web page of another site can send here: a loopback name or address. */
bool auth__host_is_local(Slice host);
