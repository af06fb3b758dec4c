/*
 * index_info.c -- the planner's question to a virtual table, and the functions that the table may
 * ask in turn while it answers; IN lists that a table takes whole.
 */
#include "capi/index_info.h"

/* ---- the question ---- */

bool
index_info__fill(BestIndex *best, HostIndex *index, sqlite3 *db)
{
    u32 count = index->constraint_count, order_count = index->order_count;
    *best = (BestIndex){.index = index, .db = db};
    sqlite3_index_info *info = &best->info;
    info->aConstraint = MEM_NEW_ARRAY(struct sqlite3_index_constraint, count + 1);
    info->aConstraintUsage = MEM_NEW_ARRAY(struct sqlite3_index_constraint_usage, count + 1);
    info->aOrderBy = MEM_NEW_ARRAY(struct sqlite3_index_orderby, order_count + 1);
    best->value = MEM_NEW_ARRAY(sqlite3_value, count + 1);
    best->takes_list = MEM_NEW_ARRAY(bool, count + 1);
    if (info->aConstraint == NULL || info->aConstraintUsage == NULL || info->aOrderBy == NULL ||
        best->value == NULL || best->takes_list == NULL)
        return false;
    info->nConstraint = (int)count;
    for (u32 i = 0; i < count; i++) {
        const HostConstraint *from = &index->constraint[i];
        info->aConstraint[i].iColumn = from->column;
        info->aConstraint[i].op = from->op;
        info->aConstraint[i].usable = from->usable;
    }
    info->nOrderBy = (int)order_count;
    for (u32 i = 0; i < order_count; i++) {
        info->aOrderBy[i].iColumn = index->order[i].column;
        info->aOrderBy[i].desc = index->order[i].desc;
    }
    info->estimatedCost = 5e98;
    info->estimatedRows = 25;
    info->colUsed = index->columns_used;
    return true;
}

bool
index_info__answers(BestIndex *best)
{
    HostIndex *index = best->index;
    const sqlite3_index_info *info = &best->info;
    for (u32 i = 0; i < index->constraint_count; i++) {
        HostConstraint *to = &index->constraint[i];
        int argument = info->aConstraintUsage[i].argvIndex;
        to->argument = argument > 0 ? (u32)argument : 0;
        to->omit = info->aConstraintUsage[i].omit != 0;
        to->takes_list = best->takes_list[i];
    }
    index->number = info->idxNum;
    index->ordered = info->orderByConsumed != 0;
    index->one_row = (info->idxFlags & SQLITE_INDEX_SCAN_UNIQUE) != 0;
    index->shows_hex = (info->idxFlags & SQLITE_INDEX_SCAN_HEX) != 0;
    index->cost = info->estimatedCost;
    index->rows = info->estimatedRows;
    index->text = NULL;
    if (info->idxStr == NULL) return true;
    index->text = arena_strndup(index->arena, info->idxStr, strlen(info->idxStr));
    return index->text != NULL;
}

void
index_info__free(BestIndex *best)
{
    sqlite3_index_info *info = &best->info;
    for (int i = 0; best->value != NULL && i < info->nConstraint; i++)
        value__clear(&best->value[i]);
    if (info->needToFreeIdxStr != 0) sqlite3_free(info->idxStr);
    mem_free(info->aConstraint);
    mem_free(info->aConstraintUsage);
    mem_free(info->aOrderBy);
    mem_free(best->value);
    mem_free(best->takes_list);
}

/* ---- what a table may ask ---- */

static const HostConstraint *
constraint(const sqlite3_index_info *info, int at)
{
    if (info == NULL || at < 0 || at >= info->nConstraint) return NULL;
    return &((const BestIndex *)info)->index->constraint[at];
}

const char *
sqlite3_vtab_collation(sqlite3_index_info *info, int at)
{
    const HostConstraint *found = constraint(info, at);
    return found == NULL ? NULL : found->collation->name;
}

int
sqlite3_vtab_distinct(sqlite3_index_info *info)
{
    return info == NULL ? 0 : ((const BestIndex *)info)->index->distinct;
}

int
sqlite3_vtab_in(sqlite3_index_info *info, int at, int handle)
{
    const HostConstraint *found = constraint(info, at);
    if (found == NULL || !found->is_list) return 0;
    if (handle >= 0) ((BestIndex *)info)->takes_list[at] = handle > 0;
    return 1;
}

int
sqlite3_vtab_rhs_value(sqlite3_index_info *info, int at, sqlite3_value **value_out)
{
    if (value_out == NULL) return SQLITE_MISUSE;
    *value_out = NULL;
    const HostConstraint *found = constraint(info, at);
    if (found == NULL) return SQLITE_MISUSE;
    if (found->value == NULL) return SQLITE_NOTFOUND;
    sqlite3_value *value = &((BestIndex *)info)->value[at];
    value->cell = *found->value;
    *value_out = value;
    return SQLITE_OK;
}

/* ---- lists ---- */

static HostList *
list_of(sqlite3_value *value)
{
    if (value->cell.type != CELL_NULL || (value->cell.flags & CELL_POINTER) == 0) return NULL;
    HostList *list = value->cell.u.pointer;
    if ((const void *)list == (const void *)host_unchanged) return NULL;
    return list->magic == HOST_LIST_MAGIC ? list : NULL;
}

static int
list_value(HostList *list, sqlite3_value *owner, sqlite3_value **value_out)
{
    *value_out = NULL;
    if (list->at >= list->count) return SQLITE_DONE;
    sqlite3_value *value = list->scratch;
    if (value == NULL) value = ARENA_NEW(&owner->arena, sqlite3_value);
    if (value == NULL) return SQLITE_NOMEM;
    list->scratch = value;
    value__clear(value);
    value->cell = list->value[list->at++];
    *value_out = value;
    return SQLITE_OK;
}

int
sqlite3_vtab_in_first(sqlite3_value *value, sqlite3_value **value_out)
{
    if (value_out == NULL) return SQLITE_MISUSE;
    *value_out = NULL;
    if (value == NULL) return SQLITE_MISUSE;
    HostList *list = list_of(value);
    if (list == NULL) return SQLITE_ERROR;
    list->at = 0;
    return list_value(list, value, value_out);
}

int
sqlite3_vtab_in_next(sqlite3_value *value, sqlite3_value **value_out)
{
    if (value_out == NULL) return SQLITE_MISUSE;
    *value_out = NULL;
    if (value == NULL) return SQLITE_MISUSE;
    HostList *list = list_of(value);
    return list == NULL ? SQLITE_ERROR : list_value(list, value, value_out);
}

void
index_info__list_end(sqlite3_value *value)
{
    HostList *list = list_of(value);
    if (list == NULL || list->scratch == NULL) return;
    value__clear(list->scratch);
    list->scratch = NULL;
}
