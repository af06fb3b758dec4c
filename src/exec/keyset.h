/*
 * keyset.h -- tuples as key bytes, and hash sets over them (private to exec/).
 *
 * Grouping, DISTINCT, set operations, IN and hash joins compare tuples by their key bytes
 * (value/key.h): equal bytes mean equal under the collations, and memcmp is SQLite's order.  A
 * collation of the host program has no key bytes; its texts are numbered by class instead (equal
 * texts get one number), which is right for equality but says nothing of order.
 */
#pragma once

#include "exec/exec__run.h"
#include "value/key.h"

typedef struct HostClasses HostClasses;

/* Makes the key bytes of tuples; the bytes live until the next call. */
typedef struct KeyMaker {
    u32 columns;
    KeyColumn *column;
    HostClasses **host; /* Per column; NULL: no host collation anywhere. */
    bool has_host;
    Arena arena; /* Texts of host classes. */
    Buf buf;
} KeyMaker;

MUST_CHECK Err exec__keymaker_init(Exec *exec, KeyMaker *maker, const Collation *const *collation,
                                   u32 columns);
void exec__keymaker_free(KeyMaker *maker);
void exec__keymaker_reset(KeyMaker *maker);
MUST_CHECK Err exec__key_make(KeyMaker *maker, const Cell *cells, Slice *key_out);

/* A set of keys, numbered from 0 in the order they came. */
typedef struct KeySetEntry {
    const u8 *p;
    u32 bytes;
    u32 hash;
} KeySetEntry;

typedef struct KeySet {
    Arena bytes;
    KeySetEntry *entry;
    u32 *slot; /* Entry number + 1; 0: free. */
    u32 count, capacity, mask;
    u64 seed;
    MemAccount *account;
} KeySet;

#define KEYSET_NONE U32_MAX

void exec__keyset_init(Exec *exec, KeySet *set);
void exec__keyset_free(KeySet *set);
void exec__keyset_clear(KeySet *set); /* Keeps the memory. */
void exec__keyset_drop(KeySet *set);  /* Does not. */
/* Forget all keys from number `count` on. */
void exec__keyset_truncate(KeySet *set, u32 count);
/* Number of the key, or KEYSET_NONE. */
u32 exec__keyset_find(const KeySet *set, Slice key);
/* Add it unless it is there; *added_out (may be NULL) says which. */
MUST_CHECK Err exec__keyset_add(KeySet *set, Slice key, u32 *number_out, bool *added_out);
static inline Slice
exec__keyset_key(const KeySet *set, u32 number)
{
    return (Slice){set->entry[number].p, set->entry[number].bytes};
}
u64 exec__keyset_memory(const KeySet *set);
