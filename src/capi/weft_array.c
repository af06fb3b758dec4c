/*
 * weft_array.c -- arrays of the program: bound to one parameter, or a row of parameters for each
 * run of a statement (weft_run_columns(), the Arrow C data interface).
 */
#include "capi/carray.h"
#include "capi/weft_impl.h"

#include "value/number.h"

/* ---- one parameter ---- */

void
weft__drop_arrays(weft_stmt *stmt, int index)
{
    CapiPointer **link = &stmt->arrays;
    while (*link != NULL) {
        CapiPointer *found = *link;
        if (index != 0 && found->index != index) {
            link = &found->next;
            continue;
        }
        *link = found->next;
        found->next = NULL;
        pointer__free(found);
    }
}

int
weft_bind_array(weft_stmt *stmt, int index, int type, const void *values, size_t count)
{
    if (stmt == NULL || (values == NULL && count > 0)) return WEFT_MISUSE;
    int item = type == WEFT_INTEGER ? SQLITE_CARRAY_INT64
               : type == WEFT_FLOAT ? SQLITE_CARRAY_DOUBLE
                                    : SQLITE_CARRAY_TEXT;
    if (item == SQLITE_CARRAY_TEXT && type != WEFT_TEXT) return WEFT_MISUSE;
    if (count > SIZE_MAX / 16) return WEFT_TOOBIG;
    int code = weft_bind_null(stmt, index);
    if (code != WEFT_OK) return code;
    CapiPointer *made = capi__array_pointer(values, count, item);
    if (made == NULL) return weft__result(stmt->db, ERR_NOMEM);
    made->index = index;
    made->next = stmt->arrays;
    stmt->arrays = made;
    Cell cell = pointer__cell(made);
    return weft__result(stmt->db, stmt_bind(stmt->stmt, (u32)index - 1, &cell));
}

/* ---- a row of parameters for each run ---- */

typedef enum Form { /* How a column's values lie in memory. */
                    FORM_NULL,
                    FORM_BOOL,
                    FORM_I8,
                    FORM_U8,
                    FORM_I16,
                    FORM_U16,
                    FORM_I32,
                    FORM_U32,
                    FORM_I64,
                    FORM_U64,
                    FORM_F32,
                    FORM_F64,
                    FORM_TEXT, /* Offsets of 32 bits. */
                    FORM_BLOB,
                    FORM_LARGE_TEXT,
                    FORM_LARGE_BLOB,
                    FORM_FIXED, /* Binary of a fixed size. */
                    FORM_COUNT_
} Form;

typedef struct Field {
    Form form;
    u32 width; /* FORM_FIXED */
    const struct ArrowArray *array;
} Field;

/* FORM_COUNT_: none that is known. */
static Form
form_of(const char *format, u32 *width_out)
{
    static const char letters[] = "nbcCsSiIlLfguzUZ"; /* In the order of Form. */
    *width_out = 0;
    const char *at = format[0] == 0 ? NULL : strchr(letters, format[0]);
    if (at != NULL && format[1] == 0) return (Form)(at - letters);
    if (format[0] != 'w' || format[1] != ':') return FORM_COUNT_;
    NumberScan scan = number_scan(SLICE(format + 2, strlen(format + 2)));
    if (scan.kind != NUMBER_INT || scan.i < 0 || scan.i > INT32_MAX) return FORM_COUNT_;
    *width_out = (u32)scan.i;
    return FORM_FIXED;
}

static i64
buffers_of(Form form)
{
    if (form == FORM_NULL) return 0;
    return form >= FORM_TEXT && form != FORM_FIXED ? 3 : 2;
}

static Err
complain(weft_stmt *stmt, Err err, u32 at, const char *what, const char *more)
{
    return session_set_error(stmt->db->session, err, "column %u of the array: %s%s", at + 1, what,
                             more);
}

static Err
fields_open(weft_stmt *stmt, const struct ArrowSchema *schema, const struct ArrowArray *array,
            Field *field)
{
    for (u32 at = 0; at < (u32)schema->n_children; at++) {
        const struct ArrowSchema *type = schema->children[at];
        const struct ArrowArray *values = array->children[at];
        if (type->dictionary != NULL)
            return complain(stmt, ERR_MISMATCH, at, "dictionaries are not taken", "");
        Form form = form_of(type->format, &field[at].width);
        if (form == FORM_COUNT_)
            return complain(stmt, ERR_MISMATCH, at, "type not taken: ", type->format);
        if (values->n_buffers < buffers_of(form) || values->length < array->offset + array->length)
            return complain(stmt, ERR_MISUSE, at, "it is shorter than its type and length say", "");
        field[at].form = form;
        field[at].array = values;
    }
    return OK;
}

static Cell
bytes_of(const Field *field, i64 from, i64 to)
{
    bool is_text = field->form == FORM_TEXT || field->form == FORM_LARGE_TEXT;
    const u8 *p = (const u8 *)field->array->buffers[2] + from;
    if (to == from) p = (const u8 *)"";
    return is_text ? cell_text(p, (size_t)(to - from)) : cell_blob(p, (size_t)(to - from));
}

/* Value `i` of the column's buffers. */
static Err
field_value(const Field *field, i64 i, Cell *out)
{
    const void *const *buffer = field->array->buffers;
    const void *values = field->form == FORM_NULL ? NULL : buffer[1];
    i64 from, to;
    switch (field->form) {
    case FORM_BOOL: *out = cell_int(((const u8 *)values)[i / 8] >> (i % 8) & 1); return OK;
    case FORM_I8: *out = cell_int(((const int8_t *)values)[i]); return OK;
    case FORM_U8: *out = cell_int(((const u8 *)values)[i]); return OK;
    case FORM_I16: *out = cell_int(((const int16_t *)values)[i]); return OK;
    case FORM_U16: *out = cell_int(((const u16 *)values)[i]); return OK;
    case FORM_I32: *out = cell_int(((const i32 *)values)[i]); return OK;
    case FORM_U32: *out = cell_int(((const u32 *)values)[i]); return OK;
    case FORM_I64: *out = cell_int(((const i64 *)values)[i]); return OK;
    case FORM_U64:
        if (((const u64 *)values)[i] > (u64)INT64_MAX) return ERR_MISMATCH;
        *out = cell_int((i64)((const u64 *)values)[i]);
        return OK;
    case FORM_F32: *out = cell_real(((const float *)values)[i]); return OK;
    case FORM_F64: *out = cell_real(((const f64 *)values)[i]); return OK;
    case FORM_TEXT:
    case FORM_BLOB:
        from = ((const i32 *)values)[i];
        to = ((const i32 *)values)[i + 1];
        break;
    case FORM_LARGE_TEXT:
    case FORM_LARGE_BLOB:
        from = ((const i64 *)values)[i];
        to = ((const i64 *)values)[i + 1];
        break;
    case FORM_FIXED:
        *out = cell_blob((const u8 *)values + i * (i64)field->width, field->width);
        return OK;
    default: *out = cell_null(); return OK;
    }
    if (from < 0 || to < from) return ERR_MISUSE;
    if (to - from > (i64)U32_MAX) return ERR_TOOBIG;
    *out = bytes_of(field, from, to);
    return OK;
}

static bool
is_valid(const struct ArrowArray *array, i64 i)
{
    const u8 *bits = array->n_buffers > 0 ? array->buffers[0] : NULL;
    return array->null_count == 0 || bits == NULL || (bits[i / 8] >> (i % 8) & 1) != 0;
}

static Err
run_row(weft_stmt *stmt, const struct ArrowArray *array, const Field *field, u32 count, i64 row)
{
    i64 at_row = array->offset + row;
    bool there = is_valid(array, at_row);
    for (u32 at = 0; at < count; at++) {
        i64 i = field[at].array->offset + at_row;
        Cell cell = cell_null();
        Err err = OK;
        if (there && is_valid(field[at].array, i)) err = field_value(&field[at], i, &cell);
        if (err != OK) return complain(stmt, err, at, err_text(err), "");
        err = stmt_bind(stmt->stmt, at, &cell);
        if (err != OK) return err;
    }
    bool more = true;
    Err err = OK;
    while (err == OK && more)
        err = stmt_step(stmt->stmt, &more);
    return err;
}

/* The rows, inside of a savepoint that lies in a transaction or is one. */
static Err
run_rows(weft_stmt *stmt, const struct ArrowArray *array, const Field *field, u32 count,
         int64_t *rows_out)
{
    Session *session = stmt->db->session;
    bool alone = session_autocommit(session);
    Err err = session_exec(session, SLICE_LITERAL("SAVEPOINT weft_run_columns"));
    if (err != OK) return err;
    while (err == OK && *rows_out < array->length) {
        err = run_row(stmt, array, field, count, *rows_out);
        if (err == OK) ++*rows_out;
    }
    if (err == OK) err = session_exec(session, SLICE_LITERAL("RELEASE weft_run_columns"));
    if (err == OK) return OK;
    /* Undo, and keep what there is to say. */
    ErrMsg kept = {.err = OK};
    (void)err_set(&kept, err, "%s", err_message(session_error(session)));
    (void)stmt_reset(stmt->stmt);
    if (alone) {
        session_rollback(session);
    } else if (!session_autocommit(session)) {
        /* A lost conflict has undone everything, and only ROLLBACK is taken: that is said too. */
        Err undo = session_exec(session, SLICE_LITERAL("ROLLBACK TO weft_run_columns"));
        if (undo == OK) undo = session_exec(session, SLICE_LITERAL("RELEASE weft_run_columns"));
        (void)undo;
    }
    (void)session_set_error(session, err, "%s", err_message(&kept));
    err_clear(&kept);
    return err;
}

int
weft_run_columns(weft_stmt *stmt, const struct ArrowSchema *schema, const struct ArrowArray *array,
                 int64_t *rows_out)
{
    int64_t rows = 0;
    if (rows_out != NULL) *rows_out = 0;
    if (stmt == NULL || schema == NULL || array == NULL || schema->format == NULL ||
        strcmp(schema->format, "+s") != 0 || schema->n_children != array->n_children ||
        schema->n_children != (int64_t)stmt_param_count(stmt->stmt) || array->length < 0)
        return WEFT_MISUSE;
    if (stmt_is_busy(stmt->stmt)) return WEFT_MISUSE;
    u32 count = (u32)schema->n_children;
    Field *field = MEM_NEW_ARRAY(Field, count + 1);
    if (field == NULL) return weft__result(stmt->db, ERR_NOMEM);
    session_lock(stmt->db->session);
    Err err = fields_open(stmt, schema, array, field);
    if (err == OK) err = run_rows(stmt, array, field, count, &rows);
    stmt_clear_bindings(stmt->stmt); /* What was bound before is not any more. */
    weft__drop_arrays(stmt, 0);
    session_unlock(stmt->db->session);
    mem_free(field);
    if (rows_out != NULL) *rows_out = rows;
    return weft__result(stmt->db, err);
}
