/*
 * check.c -- what a request may say, and SQL texts stored under numbers.
 */
#include <string.h>

#include "server/hrana/hrana.h"

static Err
check_sql(const HranaSql *sql, HranaError *error)
{
    if (sql->has_text == sql->has_id)
        return hrana__bad(error, false, "exactly one of sql and sql_id must be given");
    return OK;
}

/* Depth is bounded by the decoders. */
static Err
check_cond(const HranaCond *cond, u32 step, u32 version, HranaError *error)
{
    Err err = OK;
    if ((cond->kind == COND_OK || cond->kind == COND_ERROR) && cond->step >= step)
        return hrana__bad(error, false, "a condition of step %u refers to step %u", step,
                          cond->step);
    if (cond->kind == COND_IS_AUTOCOMMIT && version < 3)
        return hrana__bad(error, false, "is_autocommit needs version 3");
    for (const HranaCond *inner = cond->first; err == OK && inner != NULL; inner = inner->next)
        err = check_cond(inner, step, version, error);
    return err;
}

Err
hrana__check_batch(const HranaBatch *batch, u32 version, HranaError *error)
{
    Err err = OK;
    for (u32 i = 0; err == OK && i < batch->count; i++) {
        err = check_sql(&batch->step[i].stmt.sql, error);
        if (err == OK && batch->step[i].cond != NULL)
            err = check_cond(batch->step[i].cond, i, version, error);
    }
    return err;
}

Err
hrana__check_request(const HranaRequest *request, u32 version, HranaError *error)
{
    static const u8 since[HRANA_KINDS] = {
        [HRANA_CLOSE] = 2,        [HRANA_EXECUTE] = 1,        [HRANA_BATCH] = 1,
        [HRANA_SEQUENCE] = 2,     [HRANA_DESCRIBE] = 2,       [HRANA_STORE_SQL] = 2,
        [HRANA_CLOSE_SQL] = 2,    [HRANA_GET_AUTOCOMMIT] = 3, [HRANA_OPEN_STREAM] = 1,
        [HRANA_CLOSE_STREAM] = 1, [HRANA_OPEN_CURSOR] = 3,    [HRANA_CLOSE_CURSOR] = 3,
        [HRANA_FETCH_CURSOR] = 3,
    };
    if (version < since[request->kind])
        return hrana__bad(error, false, "%s needs version %u", hrana__kind_names[request->kind],
                          since[request->kind]);
    switch ((HranaKind)request->kind) {
    case HRANA_EXECUTE: return check_sql(&request->stmt.sql, error);
    case HRANA_BATCH:
    case HRANA_OPEN_CURSOR: return hrana__check_batch(&request->batch, version, error);
    case HRANA_SEQUENCE:
    case HRANA_DESCRIBE: return check_sql(&request->sql, error);
    case HRANA_STORE_SQL:
        if (!request->sql.has_text || !request->sql.has_id)
            return hrana__bad(error, false, "store_sql needs sql and sql_id");
        return OK;
    case HRANA_CLOSE_SQL:
        if (!request->sql.has_id) return hrana__bad(error, false, "close_sql needs sql_id");
        return OK;
    default: return OK;
    }
}

/* ---- stored SQL ---- */

const HranaStored *
hrana__stored(const HranaStore *store, i32 id)
{
    for (u32 i = 0; i < store->count; i++)
        if (store->item[i].id == id) return &store->item[i];
    return NULL;
}

Err
hrana__store(HranaStore *store, i32 id, Slice text)
{
    ASSERT(hrana__stored(store, id) == NULL);
    if (store->count == store->capacity) {
        u32 capacity = store->capacity == 0 ? 8 : 2 * store->capacity;
        HranaStored *item = mem_realloc(store->item, capacity * sizeof(*item));
        if (item == NULL) return ERR_NOMEM;
        store->item = item;
        store->capacity = capacity;
    }
    char *copy = mem_strndup(text.p == NULL ? (const u8 *)"" : text.p, text.bytes);
    if (copy == NULL) return ERR_NOMEM;
    store->item[store->count++] = (HranaStored){id, copy, text.bytes};
    return OK;
}

void
hrana__unstore(HranaStore *store, i32 id)
{
    for (u32 i = 0; i < store->count; i++) {
        if (store->item[i].id != id || PLANT(217)) continue;
        mem_free(store->item[i].text);
        store->item[i] = store->item[--store->count];
        return;
    }
}

void
hrana__store_free(HranaStore *store)
{
    for (u32 i = 0; i < store->count; i++)
        mem_free(store->item[i].text);
    mem_free(store->item);
    *store = (HranaStore){0};
}

static Err
resolve(HranaSql *sql, const HranaStore *store, Arena *arena, HranaError *error)
{
    if (!sql->has_id || sql->has_text) return OK;
    const HranaStored *stored = hrana__stored(store, sql->id);
    if (stored == NULL) return hrana__bad(error, false, "no SQL text is stored as %d", sql->id);
    char *copy = arena_strndup(arena, stored->text, stored->bytes);
    if (copy == NULL) return ERR_NOMEM;
    sql->text = SLICE(copy, stored->bytes);
    sql->has_text = true;
    return OK;
}

Err
hrana__resolve_batch(HranaBatch *batch, const HranaStore *store, Arena *arena, HranaError *error)
{
    Err err = OK;
    for (u32 i = 0; err == OK && i < batch->count; i++)
        err = resolve(&batch->step[i].stmt.sql, store, arena, error);
    return err;
}

Err
hrana__resolve(HranaRequest *request, const HranaStore *store, Arena *arena, HranaError *error)
{
    switch ((HranaKind)request->kind) {
    case HRANA_EXECUTE: return resolve(&request->stmt.sql, store, arena, error);
    case HRANA_BATCH:
    case HRANA_OPEN_CURSOR: return hrana__resolve_batch(&request->batch, store, arena, error);
    case HRANA_SEQUENCE:
    case HRANA_DESCRIBE: return resolve(&request->sql, store, arena, error);
    default: return OK;
    }
}
