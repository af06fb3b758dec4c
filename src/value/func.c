/*
 * func.c -- tables of functions by name.
 *
 * The slots hold index + 1 of the first definition of a name; definitions of one name need not
 * stand together, so a lookup probes on through all entries with that name.
 */
#include "value/func.h"

static u32
name_hash(Slice name)
{
    u32 hash = 2166136261u;
    for (size_t i = 0; i < name.bytes; i++) {
        u8 c = name.p[i];
        if (c >= 'A' && c <= 'Z') c |= 0x20;
        hash = (hash ^ c) * 16777619u;
    }
    return hash;
}

Err
func_table_init(FuncTable *table, const FuncTable *parent, const FuncDef *const *defs, u32 count)
{
    *table = (FuncTable){.parent = parent, .defs = defs, .count = count};
    if (count == 0) return OK;
    u32 size = 4;
    while (size < count * 2) {
        size *= 2;
    }
    table->slots = MEM_NEW_ARRAY(u32, size);
    if (table->slots == NULL) return ERR_NOMEM;
    table->slot_mask = size - 1;
    for (u32 i = 0; i < count; i++) {
        u32 at = name_hash(SLICE(defs[i]->name, strlen(defs[i]->name))) & table->slot_mask;
        while (table->slots[at] != 0) {
            at = (at + 1) & table->slot_mask;
        }
        table->slots[at] = i + 1;
    }
    return OK;
}

void
func_table_free(FuncTable *table)
{
    mem_free(table->slots);
    table->slots = NULL;
    table->count = 0;
}

/* How well a definition takes `argc` arguments: 0 not, then "any number", a range, exactly. */
static u32
match(const FuncDef *def, u32 argc)
{
    if ((i32)argc < def->argc_min) return 0;
    if (def->argc_max < 0) return 1;
    if ((i32)argc > def->argc_max) return 0;
    return def->argc_min == def->argc_max ? 3 : 2;
}

const FuncDef *
func_find(const FuncTable *table, Slice name, u32 argc, bool *exists_out)
{
    const FuncDef *best = NULL;
    u32 best_match = 0, hash = name_hash(name);
    bool exists = false;
    for (; table != NULL; table = table->parent) {
        if (table->count == 0) continue;
        u32 at = hash & table->slot_mask;
        for (; table->slots[at] != 0; at = (at + 1) & table->slot_mask) {
            const FuncDef *def = table->defs[table->slots[at] - 1];
            if (!slice_equal_nocase(name, SLICE(def->name, strlen(def->name)))) continue;
            exists = true;
            u32 now = match(def, argc);
            if (now > best_match) {
                best = def;
                best_match = now;
            }
        }
        /* A match here hides all further out, even better ones. */
        if (best != NULL) break;
    }
    if (exists_out != NULL) *exists_out = exists;
    return best;
}
