/*
 * weft_impl.h -- what the files of weft.h share: the objects behind its handles.
 */
#pragma once

#include "capi/pointer.h"
#include "session/session.h"
#include "weft.h"

struct weft_db {
    Session *session; /* NULL: opening failed. */
    ErrMsg open_error;
    int code; /* Of the last call. */
};

struct weft_stmt {
    Stmt *stmt;
    weft_db *db;
    CapiPointer *arrays; /* Bound ones. */
    /* Of weft_fetch(): types by column, those that were chosen and those of this run. */
    u8 *chosen, *type;
    u32 chosen_count, type_count;
    bool fetch_ended; /* The end came with the last batch. */
};

/* Keep the call's code. */
int weft__result(weft_db *db, Err err);
/* weft_fetch.c: the run is over, its types are forgotten. */
void weft__fetch_reset(weft_stmt *stmt);
/* weft_array.c: the array bound to a parameter goes, if there is one; 0: all. */
void weft__drop_arrays(weft_stmt *stmt, int index);
