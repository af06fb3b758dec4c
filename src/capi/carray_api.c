/*
 * carray_api.c -- arrays of the program as tables: carray(?1), bound by sqlite3_carray_bind, and
 * carray(pointer, count, type) over a pointer value of type "carray".
 */
#include "capi/carray.h"

#include "capi/pointer.h"

#define CARRAY_BOUND "carray-bind"
#define CARRAY_PLAIN "carray"

/* What sqlite3_carray_bind makes; the texts and blobs of a copy stand behind the array. */
typedef struct BoundArray {
    void *data;
    size_t count;
    int type;
    void (*destroy)(void *);
    void *destroy_arg;
} BoundArray;

/* As struct iovec: SQLITE_CARRAY_BLOB. */
typedef struct ArrayBlob {
    void *p;
    size_t bytes;
} ArrayBlob;

/* ---- binding ---- */

static void
free_array(void *arg)
{
    BoundArray *array = arg;
    if (array->destroy != NULL) array->destroy(array->destroy_arg);
    mem_free(array);
}

static size_t
item_bytes(int type)
{
    switch (type) {
    case SQLITE_CARRAY_INT32: return sizeof(int);
    case SQLITE_CARRAY_INT64: return sizeof(sqlite3_int64);
    case SQLITE_CARRAY_DOUBLE: return sizeof(double);
    case SQLITE_CARRAY_TEXT: return sizeof(char *);
    default: return sizeof(ArrayBlob);
    }
}

/* A private copy in one block; NULL: out of memory. */
static void *
copy_array(const void *data, size_t count, int type)
{
    size_t fixed = item_bytes(type) * count, bytes = fixed;
    const char *const *text = data;
    const ArrayBlob *blob = data;
    for (size_t i = 0; i < count; i++) {
        if (type == SQLITE_CARRAY_TEXT && text[i] != NULL) bytes += strlen(text[i]) + 1;
        if (type == SQLITE_CARRAY_BLOB) bytes += blob[i].bytes;
    }
    u8 *copy = mem_alloc(bytes + 1);
    if (copy == NULL) return NULL;
    if (fixed > 0) memcpy(copy, data, fixed);
    u8 *to = copy + fixed;
    for (size_t i = 0; i < count; i++) {
        const void *from = type == SQLITE_CARRAY_TEXT   ? (const void *)text[i]
                           : type == SQLITE_CARRAY_BLOB ? blob[i].p
                                                        : NULL;
        if (from == NULL) continue;
        size_t length = type == SQLITE_CARRAY_TEXT ? strlen(text[i]) + 1 : blob[i].bytes;
        memcpy(to, from, length);
        if (type == SQLITE_CARRAY_TEXT) ((char **)(void *)copy)[i] = (char *)to;
        if (type == SQLITE_CARRAY_BLOB) ((ArrayBlob *)(void *)copy)[i].p = to;
        to += length;
    }
    return copy;
}

int
sqlite3_carray_bind_v2(sqlite3_stmt *stmt, int index, void *data, int count, int type,
                       void (*destroy)(void *), void *destroy_arg)
{
    bool owned = destroy != SQLITE_STATIC && destroy != SQLITE_TRANSIENT;
    if (!capi__stmt_ok(stmt) || count < 0 || type < SQLITE_CARRAY_INT32 ||
        type > SQLITE_CARRAY_BLOB || (data == NULL && count > 0)) {
        if (owned) destroy(destroy_arg);
        return capi__stmt_ok(stmt) ? SQLITE_ERROR : SQLITE_MISUSE;
    }
    BoundArray *array = MEM_NEW(BoundArray);
    void *kept = data;
    if (array != NULL && destroy == SQLITE_TRANSIENT) kept = copy_array(data, (size_t)count, type);
    if (array == NULL || (kept == NULL && count > 0)) {
        mem_free(array);
        if (owned) destroy(destroy_arg);
        return capi__fail(stmt->db, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    *array = (BoundArray){.data = kept, .count = (size_t)count, .type = type};
    if (destroy == SQLITE_TRANSIENT) {
        array->destroy = sqlite3_free;
        array->destroy_arg = kept;
    } else if (owned) {
        array->destroy = destroy;
        array->destroy_arg = destroy_arg;
    }
    return sqlite3_bind_pointer(stmt, index, array, CARRAY_BOUND, free_array);
}

int
sqlite3_carray_bind(sqlite3_stmt *stmt, int index, void *data, int count, int type,
                    void (*destroy)(void *))
{
    return sqlite3_carray_bind_v2(stmt, index, data, count, type, destroy, data);
}

CapiPointer *
capi__array_pointer(const void *data, size_t count, int type)
{
    BoundArray *array = MEM_NEW(BoundArray);
    void *copy = array == NULL ? NULL : copy_array(data, count, type);
    if (copy == NULL) {
        mem_free(array);
        return NULL;
    }
    *array = (BoundArray){
        .data = copy, .count = count, .type = type, .destroy = mem_free, .destroy_arg = copy};
    return pointer__new(array, CARRAY_BOUND, free_array);
}

/* ---- the table ---- */

enum { COLUMN_VALUE, COLUMN_POINTER, COLUMN_COUNT, COLUMN_TYPE };

typedef struct ArrayScan {
    const void *data;
    i64 count, at; /* at: from 1; 0 before the first row. */
    int type;
    bool has_count;
} ArrayScan;

static Err
type_of(TableCall *call, const Cell *name, int *type_out)
{
    static const char *const names[] = {"int32", "int64", "double", "char*", "struct iovec"};
    Slice text;
    *type_out = SQLITE_CARRAY_INT32;
    if (name == NULL || name->type == CELL_NULL) return OK;
    Err err = cell_text_bytes(name, call->arena, &text);
    if (err != OK) return err;
    for (u32 i = 0; i < COUNT_OF(names); i++) {
        if (!slice_equal_nocase(text, SLICE(names[i], strlen(names[i])))) continue;
        *type_out = (int)i;
        return OK;
    }
    return err_set(call->msg, ERR_SQL, "unknown datatype: '%.*s'", (int)text.bytes,
                   (const char *)text.p);
}

static Err
array_start(TableCall *call, const Cell *const *arg)
{
    ArrayScan *scan = call->state;
    *scan = (ArrayScan){0};
    if (arg[0] == NULL) return OK;
    sqlite3_value value = {.cell = *arg[0]};
    const BoundArray *bound = sqlite3_value_pointer(&value, CARRAY_BOUND);
    if (arg[1] == NULL && bound != NULL) {
        scan->data = bound->data;
        scan->count = (i64)bound->count;
        scan->type = bound->type;
        return OK;
    }
    scan->data = sqlite3_value_pointer(&value, CARRAY_PLAIN);
    if (arg[1] == NULL) return OK;
    scan->has_count = true;
    scan->count = scan->data == NULL ? 0 : cell_to_int(arg[1]);
    return type_of(call, arg[2], &scan->type);
}

static Err
array_next(TableCall *call, bool *row_out)
{
    ArrayScan *scan = call->state;
    *row_out = scan->at < scan->count;
    if (*row_out) scan->at++;
    return OK;
}

static Cell
item(const ArrayScan *scan)
{
    i64 at = scan->at - 1;
    switch (scan->type) {
    case SQLITE_CARRAY_INT32: return cell_int(((const int *)scan->data)[at]);
    case SQLITE_CARRAY_INT64: return cell_int(((const sqlite3_int64 *)scan->data)[at]);
    case SQLITE_CARRAY_DOUBLE: return cell_real(((const double *)scan->data)[at]);
    case SQLITE_CARRAY_TEXT: {
        const char *text = ((const char *const *)scan->data)[at];
        return text == NULL ? cell_null() : cell_text(text, strlen(text));
    }
    default: {
        const ArrayBlob *blob = &((const ArrayBlob *)scan->data)[at];
        return cell_blob(blob->p, blob->bytes);
    }
    }
}

static Err
array_value(TableCall *call, u32 column, Cell *out)
{
    const ArrayScan *scan = call->state;
    static const char *const names[] = {"int32", "int64", "double", "char*", "struct iovec"};
    switch (column) {
    case COLUMN_VALUE: *out = item(scan); break;
    case COLUMN_COUNT: *out = cell_int(scan->count); break;
    case COLUMN_TYPE: *out = cell_text(names[scan->type], strlen(names[scan->type])); break;
    default: break; /* A pointer is not shown. */
    }
    return OK;
}

static i64
array_rowid(const TableCall *call)
{
    return ((const ArrayScan *)call->state)->at;
}

static const char *const columns[] = {"value", "pointer", "count", "ctype"};

static const TableFunc carray = {
    .name = "carray",
    .column = columns,
    .column_count = COUNT_OF(columns),
    .hidden_from = COLUMN_POINTER,
    .flags = FUNC_FALLIBLE,
    .state_bytes = sizeof(ArrayScan),
    .start = array_start,
    .next = array_next,
    .value = array_value,
    .rowid = array_rowid,
};

const TableFunc *
capi__find_table_func(void *arg, Slice name)
{
    (void)arg;
    return slice_equal_nocase(name, SLICE_LITERAL("carray")) ? &carray : NULL;
}
