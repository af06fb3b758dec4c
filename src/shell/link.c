/*
 * link.c -- a database file opened in this process, through weft.h; and the calls that go to
 * whichever kind of link there is.
 */
#include "shell/link.h"

#include <string.h>

#include "shell/link__impl.h"

typedef struct FileLink {
    Link link;
    weft_db *db;
} FileLink;

typedef struct FileLoad {
    LinkLoad load;
    weft_stmt *stmt;
    bool own_transaction;
} FileLoad;

static FileLink *
file_link(Link *link)
{
    return CONTAINER_OF(link, FileLink, link);
}

void
link_error_clear(LinkError *error)
{
    mem_free(error->text);
    *error = (LinkError){.offset = -1};
}

bool
link__fail(LinkError *error_out, int code, i64 offset, bool while_running, const char *text)
{
    link_error_clear(error_out);
    *error_out = (LinkError){
        .code = code, .offset = offset, .while_running = while_running, .text = mem_strdup(text)};
    return false;
}

static bool
db_fail(FileLink *file, LinkError *error_out, int code, i64 base, bool while_running)
{
    int offset = weft_error_offset(file->db);
    return link__fail(error_out, code, offset < 0 ? -1 : base + offset, while_running,
                      weft_errmsg(file->db));
}

/* ---- values ---- */

static int
bind_value(weft_stmt *stmt, int index, const LinkValue *value)
{
    switch (value->type) {
    case WEFT_INTEGER: return weft_bind_int64(stmt, index, value->i);
    case WEFT_FLOAT: return weft_bind_double(stmt, index, value->r);
    case WEFT_TEXT:
        return weft_bind_text(stmt, index, (const char *)value->text.p,
                              (ptrdiff_t)value->text.bytes);
    case WEFT_BLOB: return weft_bind_blob(stmt, index, value->text.p, value->text.bytes);
    default: return weft_bind_null(stmt, index);
    }
}

static LinkValue
column_value(weft_stmt *stmt, int column)
{
    LinkValue value = {.type = weft_column_type(stmt, column)};
    const void *bytes = NULL;
    switch (value.type) {
    case WEFT_INTEGER: value.i = weft_column_int64(stmt, column); return value;
    case WEFT_FLOAT: value.r = weft_column_double(stmt, column); return value;
    case WEFT_TEXT: bytes = weft_column_text(stmt, column); break;
    case WEFT_BLOB: bytes = weft_column_blob(stmt, column); break;
    default: return value;
    }
    if (bytes != NULL) value.text = SLICE(bytes, weft_column_bytes(stmt, column));
    return value;
}

/* ---- running ---- */

static int
params_bind(weft_stmt *stmt, LinkParam param, void *param_arg)
{
    int count = param != NULL ? weft_bind_count(stmt) : 0;
    for (int i = 1; i <= count; i++) {
        char number[16] = "?";
        const char *name = weft_bind_name(stmt, i);
        LinkValue value;
        if (name == NULL) { /* A plain ? is known by its number. */
            char *at = number + 1;
            for (int unit = 100000; unit > 0; unit /= 10)
                if (i >= unit) *at++ = (char)('0' + i / unit % 10);
            name = number;
        }
        if (!param(param_arg, name, &value)) continue;
        int code = bind_value(stmt, i, &value);
        if (code != WEFT_OK) return code;
    }
    return WEFT_OK;
}

/* Step to the end, handing rows over.  The code that ended it. */
static int
stmt_pump(weft_stmt *stmt, const LinkSink *sink, LinkValue *values, u32 columns)
{
    for (;;) {
        int code = weft_step(stmt);
        if (code != WEFT_ROW) return code;
        for (u32 i = 0; i < columns; i++)
            values[i] = column_value(stmt, (int)i);
        if (sink->row != NULL && !sink->row(sink->arg, columns, values)) return WEFT_DONE;
    }
}

static bool
stmt_run(FileLink *file, weft_stmt *stmt, const LinkSink *sink, LinkError *error_out)
{
    u32 columns = (u32)weft_column_count(stmt);
    LinkValue *values = MEM_NEW_ARRAY(LinkValue, columns + 1);
    const char **names = MEM_NEW_ARRAY(const char *, columns + 1);
    bool good = values != NULL && names != NULL;
    if (!good) {
        link__fail(error_out, WEFT_NOMEM, -1, true, "out of memory");
    } else {
        for (u32 i = 0; i < columns; i++)
            names[i] = weft_column_name(stmt, (int)i);
        bool shown = columns > 0 && sink->columns != NULL;
        good = !shown || sink->columns(sink->arg, columns, names);
        int code = good ? stmt_pump(stmt, sink, values, columns) : WEFT_DONE;
        if (code != WEFT_DONE) good = db_fail(file, error_out, code, 0, true);
        if (good) weft_reset(stmt);
        if (shown && sink->done != NULL) sink->done(sink->arg);
    }
    mem_free(values);
    mem_free(names);
    return good;
}

static bool
file_run(Link *link, Slice sql, const LinkSink *sink, LinkParam param, void *param_arg,
         LinkError *error_out)
{
    FileLink *file = file_link(link);
    const char *start = (const char *)sql.p, *end = start + sql.bytes;
    for (const char *at = start; at < end;) {
        weft_stmt *stmt = NULL;
        const char *tail = NULL;
        int code = weft_prepare(file->db, at, end - at, &stmt, &tail);
        if (code != WEFT_OK) {
            db_fail(file, error_out, code, at - start, false);
            error_out->statement = at - start;
            return false;
        }
        at = tail != NULL && tail > at ? tail : end;
        if (stmt == NULL) continue;
        code = params_bind(stmt, param, param_arg);
        bool good = code == WEFT_OK ? stmt_run(file, stmt, sink, error_out)
                                    : db_fail(file, error_out, code, 0, true);
        weft_finalize(stmt);
        if (!good) return false;
    }
    return true;
}

static i64
file_changes(Link *link)
{
    return weft_changes(file_link(link)->db);
}

static void
file_interrupt(Link *link)
{
    weft_interrupt(file_link(link)->db);
}

static void
file_close(Link *link)
{
    FileLink *file = file_link(link);
    weft_close(file->db);
    mem_free(file);
}

/* ---- loading ---- */

static LinkLoad *
file_load_begin(Link *link, const char *sql, u32 columns, LinkError *error_out)
{
    FileLink *file = file_link(link);
    FileLoad *load = MEM_NEW(FileLoad);
    if (load == NULL) {
        link__fail(error_out, WEFT_NOMEM, -1, false, "out of memory");
        return NULL;
    }
    load->load = (LinkLoad){link, columns};
    int code = weft_prepare(file->db, sql, -1, &load->stmt, NULL);
    if (code == WEFT_OK && weft_autocommit(file->db)) {
        code = weft_exec(file->db, "BEGIN");
        load->own_transaction = code == WEFT_OK;
    }
    if (code == WEFT_OK) return &load->load;
    db_fail(file, error_out, code, 0, false);
    weft_finalize(load->stmt);
    mem_free(load);
    return NULL;
}

static bool
file_load_row(LinkLoad *base, const LinkValue *values, LinkError *error_out)
{
    FileLoad *load = CONTAINER_OF(base, FileLoad, load);
    FileLink *file = file_link(base->link);
    int code = WEFT_OK;
    for (u32 i = 0; i < base->columns && code == WEFT_OK; i++)
        code = bind_value(load->stmt, (int)i + 1, &values[i]);
    if (code == WEFT_OK) code = weft_step(load->stmt);
    if (code == WEFT_ROW || code == WEFT_DONE) {
        weft_reset(load->stmt);
        return true;
    }
    db_fail(file, error_out, code, 0, true);
    weft_reset(load->stmt);
    return false;
}

static bool
file_load_end(LinkLoad *base, bool keep, LinkError *error_out)
{
    FileLoad *load = CONTAINER_OF(base, FileLoad, load);
    FileLink *file = file_link(base->link);
    bool good = true;
    weft_finalize(load->stmt);
    if (load->own_transaction) {
        int code = keep ? weft_exec(file->db, "COMMIT") : WEFT_OK;
        if (code != WEFT_OK) good = db_fail(file, error_out, code, 0, true);
        if (!weft_autocommit(file->db)) (void)weft_exec(file->db, "ROLLBACK");
    }
    mem_free(load);
    return good;
}

static const LinkKind file_kind = {file_close,      file_interrupt, file_run,     file_changes,
                                   file_load_begin, file_load_row,  file_load_end};

Link *
link_open_file(const char *path, bool read_only, LinkError *error_out)
{
    FileLink *file = MEM_NEW(FileLink);
    weft_options options = {.read_only = read_only};
    int code = file != NULL ? weft_open(path, &options, &file->db) : WEFT_NOMEM;
    if (code == WEFT_OK) {
        file->link.kind = &file_kind;
        return &file->link;
    }
    link__fail(error_out, code, -1, false,
               file != NULL && file->db != NULL ? weft_errmsg(file->db) : "out of memory");
    if (file != NULL) weft_close(file->db);
    mem_free(file);
    return NULL;
}

bool
link_stats(Link *link, weft_statistics *stats_out)
{
    return link->kind == &file_kind && weft_stats(file_link(link)->db, stats_out) == WEFT_OK;
}

bool
link_backup(Link *link, const char *name, const char *path, LinkError *error_out)
{
    ASSERT(link->kind == &file_kind);
    FileLink *file = file_link(link);
    int code = weft_backup(file->db, name, path);
    return code == WEFT_OK || db_fail(file, error_out, code, 0, true);
}

bool
link_limit(Link *link, int limit, int to, int *value_out)
{
    if (link->kind != &file_kind) return false;
    *value_out = weft_limit(file_link(link)->db, limit, to);
    return *value_out >= 0;
}

/* ---- any kind ---- */

void
link_close(Link *link)
{
    if (link != NULL) link->kind->close(link);
}

bool
link_is_remote(const Link *link)
{
    return link->kind != &file_kind;
}

void
link_interrupt(Link *link)
{
    link->kind->interrupt(link);
}

bool
link_run(Link *link, Slice sql, const LinkSink *sink, LinkParam param, void *param_arg,
         LinkError *error_out)
{
    return link->kind->run(link, sql, sink, param, param_arg, error_out);
}

i64
link_changes(Link *link)
{
    return link->kind->changes(link);
}

LinkLoad *
link_load_begin(Link *link, const char *sql, u32 columns, LinkError *error_out)
{
    return link->kind->load_begin(link, sql, columns, error_out);
}

bool
link_load_row(LinkLoad *load, const LinkValue *values, LinkError *error_out)
{
    return load->link->kind->load_row(load, values, error_out);
}

bool
link_load_end(LinkLoad *load, bool keep, LinkError *error_out)
{
    return load->link->kind->load_end(load, keep, error_out);
}
