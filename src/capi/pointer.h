/*
 * pointer.h -- pointer values: what sqlite3_bind_pointer and sqlite3_result_pointer pass to
 * functions and virtual tables, unseen by SQL.
 *
 * The cell is NULL with CELL_POINTER and points at one of these.  A bound one lives with its
 * statement until it is bound again; a result lives until no statement of the connection runs.
 */
#pragma once

#include "capi/capi.h"

#define POINTER_MAGIC 0x50545231u

typedef struct CapiPointer {
    u32 magic;
    struct CapiPointer *next;
    int index; /* Of the parameter. */
    void *pointer;
    char *type;
    void (*destroy)(void *);
} CapiPointer;

/* NULL: out of memory, and `destroy` has been called. */
CapiPointer *pointer__new(void *pointer, const char *type, void (*destroy)(void *));
/* Free a whole list. */
void pointer__free(CapiPointer *pointer);
Cell pointer__cell(CapiPointer *pointer);
