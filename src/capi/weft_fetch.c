/*
 * weft_fetch.c -- results as columns: weft_fetch() and its batches of the Arrow C data interface.
 *
 * A batch is a struct array.  Each of its columns owns its memory alone, so that a consumer may
 * move a column out of the batch and release the batch; the batch's own block holds the children.
 * A column grows in three buffers: validity bits, offsets (text and blobs), values.  A batch with
 * BATCH_BYTES of text and blobs ends, so that it is still in the cache when it is read, and the
 * memory of the one before serves it: fresh pages cost more than filling them.
 */
#include "capi/weft_impl.h"

/* Types are WEFT_INTEGER ... WEFT_BLOB, which are CELL_INT ... CELL_BLOB; WEFT_NULL: undecided. */
STATIC_ASSERT((int)WEFT_INTEGER == (int)CELL_INT && (int)WEFT_BLOB == (int)CELL_BLOB);

typedef struct Column {
    const void *buffer[3]; /* As Arrow wants them; set when the batch is done. */
    Buf valid, offsets, values;
    i64 nulls;
    bool can_change; /* Undecided, or integers so far: in the first batch of a run. */
} Column;

#define BATCH_BYTES ((size_t)1 << 20) /* include/weft.h says so. */

/* What stands behind a batch. */
typedef struct Children {
    const void *buffer[1]; /* No validity: a row is never NULL. */
    struct ArrowArray **list;
    struct ArrowArray *child;
} Children;

void
weft__fetch_reset(weft_stmt *stmt)
{
    mem_free(stmt->type);
    stmt->type = NULL;
    stmt->type_count = 0;
    stmt->fetch_ended = false;
}

/* ---- columns ---- */

static void
column_free(Column *column)
{
    if (column == NULL) return;
    buf_free(&column->valid);
    buf_free(&column->offsets);
    buf_free(&column->values);
    mem_free(column);
}

static void
column_release(struct ArrowArray *array)
{
    column_free(array->private_data);
    array->release = NULL;
}

static Err
append_valid(Column *column, i64 row, bool is_valid)
{
    Err err = row % 8 == 0 ? buf_append_byte(&column->valid, 0) : OK;
    if (err != OK) return err;
    if (is_valid) {
        column->valid.p[row / 8] |= (u8)(1u << (row % 8));
    } else {
        column->nulls++;
    }
    return OK;
}

static Err
append_offset(Column *column)
{
    i64 offset = (i64)column->values.bytes;
    return buf_append(&column->offsets, &offset, sizeof(offset));
}

/* The beginning: `nulls` rows that came before the type was known. */
static Err
column_begin(Column *column, u8 type, i64 nulls)
{
    Err err = OK;
    i64 zero = 0;
    if (type >= WEFT_TEXT) {
        for (i64 i = 0; err == OK && i <= nulls; i++)
            err = append_offset(column);
        return err;
    }
    for (i64 i = 0; err == OK && i < nulls; i++)
        err = buf_append(&column->values, &zero, sizeof(zero));
    return err;
}

/* Integers become reals where each of them is one. */
static bool
column_widen(Column *column)
{
    i64 count = (i64)(column->values.bytes / sizeof(i64));
    i64 *integer = (i64 *)(void *)column->values.p;
    for (i64 i = 0; i < count; i++) {
        if (number_compare_int_real(integer[i], (f64)integer[i]) != 0) return false;
    }
    for (i64 i = 0; i < count; i++) {
        f64 real = (f64)integer[i];
        memcpy(&integer[i], &real, sizeof(real));
    }
    return true;
}

static Err
append_bytes(weft_stmt *stmt, Column *column, u32 at, const Cell *cell)
{
    Err err;
    if ((cell->flags & CELL_ZEROBLOB) != 0) {
        err = buf_reserve(&column->values, cell->bytes);
        if (err == OK && cell->bytes > 0)
            memset(column->values.p + column->values.bytes, 0, cell->bytes);
        if (err == OK) column->values.bytes += cell->bytes;
    } else if (cell_is_number(cell)) {
        size_t bytes;
        const char *text = stmt_row_text(stmt->stmt, at, &bytes);
        err = text == NULL ? ERR_NOMEM : buf_append(&column->values, text, bytes);
    } else {
        err = cell->bytes == 0 ? OK : buf_append(&column->values, cell->u.p, cell->bytes);
    }
    return err == OK ? append_offset(column) : err;
}

/* ERR_MISMATCH: the value does not fit the type. */
static Err
append_value(weft_stmt *stmt, Column *column, u32 at, const Cell *cell)
{
    i64 integer;
    f64 real;
    switch (stmt->type[at]) {
    case WEFT_INTEGER:
        if (cell->type == CELL_INT) {
            integer = cell->u.i;
        } else if (cell->type != CELL_REAL || !real_is_int(cell->u.r, &integer)) {
            return ERR_MISMATCH;
        }
        return buf_append(&column->values, &integer, sizeof(integer));
    case WEFT_FLOAT:
        if (!cell_is_number(cell)) return ERR_MISMATCH;
        real = cell->type == CELL_REAL ? cell->u.r : (f64)cell->u.i;
        if (cell->type == CELL_INT && number_compare_int_real(cell->u.i, real) != 0)
            return ERR_MISMATCH;
        return buf_append(&column->values, &real, sizeof(real));
    default:
        if (stmt->type[at] == WEFT_TEXT && cell->type == CELL_BLOB) return ERR_MISMATCH;
        return append_bytes(stmt, column, at, cell);
    }
}

static Err
append_cell(weft_stmt *stmt, Column *column, u32 at, const Cell *cell, i64 row)
{
    u8 *type = &stmt->type[at];
    Err err = append_valid(column, row, cell->type != CELL_NULL);
    if (err != OK) return err;
    if (cell->type == CELL_NULL) {
        i64 zero = 0;
        if (*type == WEFT_NULL) return OK;
        return *type >= WEFT_TEXT ? append_offset(column)
                                  : buf_append(&column->values, &zero, sizeof(zero));
    }
    if (*type == WEFT_NULL) {
        *type = cell->type;
        err = column_begin(column, *type, row);
        if (err != OK) return err;
    } else if (column->can_change && *type == WEFT_INTEGER && cell->type == CELL_REAL) {
        if (!real_is_int(cell->u.r, &(i64){0}) && column_widen(column)) *type = WEFT_FLOAT;
    }
    err = append_value(stmt, column, at, cell);
    if (err != ERR_MISMATCH) return err;
    static const char *const names[] = {"", "integers", "reals", "text", "blobs"};
    const PlanColumn *info = stmt_column(stmt->stmt, at);
    return session_set_error(stmt->db->session, ERR_MISMATCH,
                             "row %lld of the batch, column %s: %s %s among %s", (long long)row + 1,
                             info == NULL ? "" : info->name, cell->type == CELL_INT ? "an" : "a",
                             cell_type_name(cell), names[*type]);
}

/* ---- types ---- */

/* WEFT_NULL: by the values. */
static u8
declared_type(const PlanColumn *column)
{
    if (column == NULL || column->decl_type == NULL || column->decl_type[0] == 0) return WEFT_NULL;
    switch (affinity_of_type(SLICE(column->decl_type, strlen(column->decl_type)))) {
    case AFFINITY_INTEGER: return WEFT_INTEGER;
    case AFFINITY_REAL: return WEFT_FLOAT;
    case AFFINITY_TEXT: return WEFT_TEXT;
    case AFFINITY_BLOB: return WEFT_BLOB;
    default: return WEFT_NULL;
    }
}

static Err
types_begin(weft_stmt *stmt)
{
    u32 count = stmt_column_count(stmt->stmt);
    if (stmt->type != NULL && stmt->type_count == count) return OK;
    weft__fetch_reset(stmt);
    stmt->type = mem_alloc_zeroed((size_t)count + 1);
    if (stmt->type == NULL) return ERR_NOMEM;
    stmt->type_count = count;
    for (u32 at = 0; at < count; at++) {
        u8 chosen = at < stmt->chosen_count ? stmt->chosen[at] : WEFT_NULL;
        stmt->type[at] = chosen != WEFT_NULL ? chosen : declared_type(stmt_column(stmt->stmt, at));
    }
    return OK;
}

int
weft_fetch_type(weft_stmt *stmt, int column, int type)
{
    if (stmt == NULL || type < WEFT_INTEGER || type > WEFT_NULL) return WEFT_MISUSE;
    u32 count = stmt_column_count(stmt->stmt);
    if (column < 0 || (u32)column >= count) return WEFT_RANGE;
    if (stmt->chosen_count < count) {
        u8 *chosen = mem_alloc(count);
        if (chosen == NULL) return weft__result(stmt->db, ERR_NOMEM);
        memset(chosen, WEFT_NULL, count);
        if (stmt->chosen_count > 0) memcpy(chosen, stmt->chosen, stmt->chosen_count);
        mem_free(stmt->chosen);
        stmt->chosen = chosen;
        stmt->chosen_count = count;
    }
    stmt->chosen[column] = (u8)type;
    return WEFT_OK;
}

/* ---- the schema ---- */

static const char *
type_format(u8 type)
{
    switch (type) {
    case WEFT_INTEGER: return "l";
    case WEFT_FLOAT: return "g";
    case WEFT_BLOB: return "Z";
    default: return "U";
    }
}

static void
field_release(struct ArrowSchema *schema)
{
    mem_free(schema->private_data);
    schema->release = NULL;
}

static void
schema_release(struct ArrowSchema *schema)
{
    for (i64 i = 0; i < schema->n_children; i++) {
        struct ArrowSchema *child = schema->children[i];
        if (child->release != NULL) child->release(child);
    }
    mem_free(schema->private_data);
    schema->release = NULL;
}

static Err
make_schema(const weft_stmt *stmt, const u8 *type, u32 count, struct ArrowSchema *out)
{
    size_t list = sizeof(struct ArrowSchema *) * count;
    u8 *block = mem_alloc_zeroed(list + sizeof(struct ArrowSchema) * count + 1);
    if (block == NULL) return ERR_NOMEM;
    *out = (struct ArrowSchema){.format = "+s",
                                .name = "",
                                .children = (struct ArrowSchema **)(void *)block,
                                .release = schema_release,
                                .private_data = block};
    struct ArrowSchema *child = (struct ArrowSchema *)(void *)(block + list);
    for (u32 at = 0; at < count; at++, out->n_children++) {
        const PlanColumn *info = stmt_column(stmt->stmt, at);
        char *name = mem_strdup(info == NULL || info->name == NULL ? "" : info->name);
        if (name == NULL) {
            schema_release(out);
            return ERR_NOMEM;
        }
        out->children[at] = &child[at];
        child[at] = (struct ArrowSchema){.format = type_format(type[at]),
                                         .name = name,
                                         .flags = ARROW_FLAG_NULLABLE,
                                         .release = field_release,
                                         .private_data = name};
    }
    return OK;
}

int
weft_fetch_schema(weft_stmt *stmt, struct ArrowSchema *schema_out)
{
    if (schema_out == NULL) return WEFT_MISUSE;
    *schema_out = (struct ArrowSchema){.format = NULL};
    if (stmt == NULL) return WEFT_MISUSE;
    session_lock(stmt->db->session);
    Err err = types_begin(stmt);
    if (err == OK) err = make_schema(stmt, stmt->type, stmt->type_count, schema_out);
    session_unlock(stmt->db->session);
    return weft__result(stmt->db, err);
}

/* ---- batches ---- */

static void
batch_release(struct ArrowArray *batch)
{
    Children *children = batch->private_data;
    for (i64 i = 0; i < batch->n_children; i++) {
        struct ArrowArray *child = batch->children[i];
        if (child->release != NULL) child->release(child);
    }
    mem_free(children->child);
    mem_free(children->list);
    mem_free(children);
    batch->release = NULL;
}

/* A batch with empty columns of the run's types. */
static Err
batch_begin(weft_stmt *stmt, struct ArrowArray *batch)
{
    u32 count = stmt->type_count;
    Children *children = MEM_NEW(Children);
    if (children == NULL) return ERR_NOMEM;
    children->list = MEM_NEW_ARRAY(struct ArrowArray *, count + 1);
    children->child = MEM_NEW_ARRAY(struct ArrowArray, count + 1);
    *batch = (struct ArrowArray){.n_buffers = 1,
                                 .buffers = children->buffer,
                                 .children = children->list,
                                 .release = batch_release,
                                 .private_data = children};
    if (children->list == NULL || children->child == NULL) return ERR_NOMEM;
    for (u32 at = 0; at < count; at++) {
        Column *column = MEM_NEW(Column);
        if (column == NULL) return ERR_NOMEM;
        children->child[at] = (struct ArrowArray){.release = column_release,
                                                  .private_data = column};
        children->list[at] = &children->child[at];
        batch->n_children++;
        u8 type = stmt->type[at];
        column->can_change = type == WEFT_NULL;
        Err err = type == WEFT_NULL ? OK : column_begin(column, type, 0);
        if (err != OK) return err;
    }
    return OK;
}

/* No type changes any more; give the buffers their places. */
static Err
batch_end(weft_stmt *stmt, struct ArrowArray *batch)
{
    static const u64 nothing = 0; /* A buffer of no values must still not be NULL. */
    for (u32 at = 0; at < stmt->type_count; at++) {
        struct ArrowArray *array = batch->children[at];
        Column *column = array->private_data;
        if (stmt->type[at] == WEFT_NULL) {
            stmt->type[at] = WEFT_TEXT;
            Err err = column_begin(column, WEFT_TEXT, batch->length);
            if (err != OK) return err;
        }
        bool is_bytes = stmt->type[at] >= WEFT_TEXT;
        const void *values = column->values.p == NULL ? &nothing : (void *)column->values.p;
        column->buffer[0] = column->nulls == 0 ? NULL : column->valid.p;
        column->buffer[1] = is_bytes ? column->offsets.p : values;
        column->buffer[2] = is_bytes ? values : NULL;
        array->length = batch->length;
        array->null_count = column->nulls;
        array->n_buffers = is_bytes ? 3 : 2;
        array->buffers = column->buffer;
    }
    return OK;
}

static Err
fetch_rows(weft_stmt *stmt, i64 rows_max, struct ArrowArray *batch)
{
    bool row = true;
    Err err = OK;
    size_t bytes = 0; /* Of text and blobs. */
    while (err == OK && batch->length < rows_max && bytes < BATCH_BYTES) {
        err = stmt_step(stmt->stmt, &row);
        if (err != OK || !row) break;
        /* Only now the columns are those of this run: the schema may have changed before it. */
        if (batch->release == NULL) {
            err = types_begin(stmt);
            if (err == OK) err = batch_begin(stmt, batch);
        }
        const Cell *cell = stmt_row(stmt->stmt);
        for (u32 at = 0; err == OK && at < stmt->type_count; at++) {
            err = append_cell(stmt, batch->children[at]->private_data, at, &cell[at],
                              batch->length);
            if (cell[at].type >= CELL_TEXT) bytes += cell[at].bytes;
        }
        if (err == OK) batch->length++;
    }
    if (err == OK && batch->length > 0) err = batch_end(stmt, batch);
    stmt->fetch_ended = err == OK && !row && batch->length > 0;
    return err;
}

int
weft_fetch(weft_stmt *stmt, int64_t rows_max, struct ArrowArray *array_out)
{
    if (array_out == NULL) return WEFT_MISUSE;
    *array_out = (struct ArrowArray){.release = NULL};
    if (stmt == NULL || rows_max <= 0) return WEFT_MISUSE;
    if (stmt->fetch_ended) {
        weft__fetch_reset(stmt);
        return WEFT_DONE;
    }
    Session *session = stmt->db->session;
    session_lock(session);
    Err err = fetch_rows(stmt, rows_max, array_out);
    bool done = err == OK && array_out->length == 0;
    if (err != OK || done) {
        if (array_out->release != NULL) array_out->release(array_out);
        *array_out = (struct ArrowArray){.release = NULL};
        weft__fetch_reset(stmt);
    }
    if (err != OK && stmt_is_busy(stmt->stmt)) {
        /* Not the statement's own error: end it, and keep what there is to say. */
        ErrMsg kept = {.err = OK};
        bool said = session_error(session)->err == err;
        (void)err_set(&kept, err, "%s", said ? err_message(session_error(session)) : err_text(err));
        (void)stmt_reset(stmt->stmt);
        (void)session_set_error(session, err, "%s", err_message(&kept));
        err_clear(&kept);
    }
    session_unlock(session);
    int code = weft__result(stmt->db, err);
    return code != WEFT_OK ? code : done ? WEFT_DONE : WEFT_ROW;
}

/* ---- the stream ---- */

typedef struct Stream {
    weft_stmt *stmt;
    i64 rows_max;
    struct ArrowArray first; /* Fetched ahead, so that the types are known. */
    u8 *type;
    u32 type_count;
    bool ended;
} Stream;

/* The interface wants numbers of errno.h, which are the system's. */
enum { STREAM_EIO = 5, STREAM_ENOMEM = 12, STREAM_EINVAL = 22 };

static int
stream_errno(int code)
{
    return code == WEFT_NOMEM ? STREAM_ENOMEM : code == WEFT_MISMATCH ? STREAM_EINVAL : STREAM_EIO;
}

static int
stream_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    Stream *state = stream->private_data;
    *out = (struct ArrowSchema){.release = NULL};
    return make_schema(state->stmt, state->type, state->type_count, out) == OK ? 0 : STREAM_ENOMEM;
}

static int
stream_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    Stream *state = stream->private_data;
    *out = state->first;
    state->first = (struct ArrowArray){.release = NULL};
    if (out->release != NULL || state->ended) return 0;
    int code = weft_fetch(state->stmt, state->rows_max, out);
    state->ended = code != WEFT_ROW;
    return code == WEFT_ROW || code == WEFT_DONE ? 0 : stream_errno(code);
}

static const char *
stream_error(struct ArrowArrayStream *stream)
{
    return weft_errmsg(((Stream *)stream->private_data)->stmt->db);
}

static void
stream_release(struct ArrowArrayStream *stream)
{
    Stream *state = stream->private_data;
    if (state->first.release != NULL) state->first.release(&state->first);
    (void)weft_reset(state->stmt);
    mem_free(state->type);
    mem_free(state);
    stream->release = NULL;
}

int
weft_fetch_stream(weft_stmt *stmt, int64_t rows_max, struct ArrowArrayStream *stream_out)
{
    if (stream_out == NULL) return WEFT_MISUSE;
    *stream_out = (struct ArrowArrayStream){.release = NULL};
    if (stmt == NULL || rows_max <= 0) return WEFT_MISUSE;
    Stream *state = MEM_NEW(Stream);
    if (state == NULL) return weft__result(stmt->db, ERR_NOMEM);
    *state = (Stream){.stmt = stmt, .rows_max = rows_max};
    int code = weft_fetch(stmt, rows_max, &state->first);
    Err err = code == WEFT_DONE ? types_begin(stmt) : OK;
    state->type_count = stmt->type_count;
    if (err == OK && (code == WEFT_ROW || code == WEFT_DONE)) {
        state->type = mem_alloc((size_t)stmt->type_count + 1);
        if (state->type == NULL) err = ERR_NOMEM;
    }
    if (state->type == NULL || err != OK) {
        if (state->first.release != NULL) state->first.release(&state->first);
        mem_free(state->type);
        mem_free(state);
        return err == OK ? code : weft__result(stmt->db, err);
    }
    memcpy(state->type, stmt->type, stmt->type_count);
    state->ended = code == WEFT_DONE;
    *stream_out = (struct ArrowArrayStream){.get_schema = stream_schema,
                                            .get_next = stream_next,
                                            .get_last_error = stream_error,
                                            .release = stream_release,
                                            .private_data = state};
    return WEFT_OK;
}
