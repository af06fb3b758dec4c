/*
 * uri.h -- names of databases that are written as URIs.
 *
 * Pure functions, for any thread.
 */
#pragma once

#include "base/base.h"

/* Path and options of a "file:" URI. */
typedef struct UriName {
    char *path; /* The caller frees it, also after an error. */
    bool memory, read_only, no_create, multi, shared;
    bool names_mode; /* It says which access it wants to a file. */
} UriName;

/* Other names than "file:...", and all if not `as_uri`, are taken as they are.  ERR_SQL: a
   parameter that is known has a value that is not; ERR_NOMEM. */
MUST_CHECK Err uri_parse(const char *file, bool as_uri, UriName *name, ErrMsg *msg);
