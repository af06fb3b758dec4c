/*
 * pointer.c -- pointer values: bind, result, value.
 */
#include "capi/pointer.h"

#include "capi/host_func.h"

CapiPointer *
pointer__new(void *pointer, const char *type, void (*destroy)(void *))
{
    CapiPointer *made = MEM_NEW(CapiPointer);
    char *copy = mem_strdup(type == NULL ? "" : type);
    if (made == NULL || copy == NULL) {
        mem_free(made);
        mem_free(copy);
        if (destroy != NULL) destroy(pointer);
        return NULL;
    }
    *made = (CapiPointer){
        .magic = POINTER_MAGIC, .pointer = pointer, .type = copy, .destroy = destroy};
    return made;
}

void
pointer__free(CapiPointer *pointer)
{
    while (pointer != NULL) {
        CapiPointer *next = pointer->next;
        if (pointer->destroy != NULL) pointer->destroy(pointer->pointer);
        mem_free(pointer->type);
        mem_free(pointer);
        pointer = next;
    }
}

Cell
pointer__cell(CapiPointer *pointer)
{
    return (Cell){.type = CELL_NULL, .flags = CELL_POINTER, .u.pointer = pointer};
}

/* The one of parameter `index` goes, whatever is bound in its place. */
void
capi__drop_pointer(sqlite3_stmt *stmt, int index)
{
    CapiPointer **link = &stmt->pointers;
    while (*link != NULL && (*link)->index != index)
        link = &(*link)->next;
    CapiPointer *found = *link;
    if (found == NULL) return;
    *link = found->next;
    found->next = NULL;
    pointer__free(found);
}

int
sqlite3_bind_pointer(sqlite3_stmt *stmt, int index, void *pointer, const char *type,
                     void (*destroy)(void *))
{
    if (!capi__stmt_ok(stmt)) {
        if (destroy != NULL) destroy(pointer);
        return SQLITE_MISUSE;
    }
    int code = sqlite3_bind_null(stmt, index);
    if (code != SQLITE_OK) {
        if (destroy != NULL) destroy(pointer);
        return code;
    }
    CapiPointer *made = pointer__new(pointer, type, destroy);
    if (made == NULL) return capi__fail(stmt->db, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    made->index = index;
    made->next = stmt->pointers;
    stmt->pointers = made;
    Cell cell = pointer__cell(made);
    return capi__result(stmt->db, stmt_bind(stmt->stmt, (u32)index - 1, &cell));
}

void
sqlite3_result_pointer(sqlite3_context *context, void *pointer, const char *type,
                       void (*destroy)(void *))
{
    if (context == NULL) {
        if (destroy != NULL) destroy(pointer);
        return;
    }
    sqlite3_result_null(context);
    CapiPointer *made = pointer__new(pointer, type, destroy);
    if (made == NULL) {
        sqlite3_result_error_nomem(context);
        return;
    }
    sqlite3 *db = context->db;
    made->next = db->pointers;
    db->pointers = made;
    if (context->result != NULL) *context->result = pointer__cell(made);
}

void
capi__end_pointers(sqlite3 *db)
{
    if (db->pointers == NULL || session_is_running(db->session)) return;
    CapiPointer *list = db->pointers;
    db->pointers = NULL;
    pointer__free(list);
}

void *
sqlite3_value_pointer(sqlite3_value *value, const char *type)
{
    if (value == NULL || type == NULL || (value->cell.flags & CELL_POINTER) == 0) return NULL;
    if (value->cell.type != CELL_NULL) return NULL;
    const u32 *magic = value->cell.u.pointer;
    if (magic == (const void *)host_unchanged || *magic != POINTER_MAGIC) return NULL;
    const CapiPointer *pointer = value->cell.u.pointer;
    return strcmp(pointer->type, type) == 0 ? pointer->pointer : NULL;
}
