/*
 * blob_api.c -- sqlite3_blob: one value of one row, read and written in parts.
 *
 * The handle remembers the value as it last saw it.  A read or write looks at the row again: if it
 * is gone or its value is another one, the handle has expired (SQLITE_ABORT), as SQLite has it.  A
 * write replaces the whole value, so writing a part costs what the value is long.
 */
#include "capi/capi.h"

struct sqlite3_blob {
    sqlite3 *db;
    sqlite3_stmt *read, *write; /* write: NULL if opened read-only */
    sqlite3_int64 rowid;
    Buf value;
    int type;
    bool is_expired;
    int code; /* Of a write that failed: sqlite3_blob_close gives it once more. */
};

/* Read the row's value into `out`; the message is that of sqlite3_blob_open. */
static int
read_value(sqlite3_blob *blob, Buf *out, int *type_out)
{
    buf_clear(out);
    sqlite3_bind_int64(blob->read, 1, blob->rowid);
    int code = sqlite3_step(blob->read);
    if (code == SQLITE_DONE) {
        sqlite3_reset(blob->read);
        return capi__fail(blob->db, ERR_SQL, "no such rowid: %lld", (long long)blob->rowid);
    }
    if (code != SQLITE_ROW) return sqlite3_reset(blob->read);
    *type_out = sqlite3_column_type(blob->read, 0);
    if (*type_out != SQLITE_BLOB && *type_out != SQLITE_TEXT) {
        static const char *const names[] = {"", "integer", "real", "text", "blob", "null"};
        sqlite3_reset(blob->read);
        return capi__fail(blob->db, ERR_SQL, "cannot open value of type %s", names[*type_out]);
    }
    const void *bytes = sqlite3_column_blob(blob->read, 0);
    Err err = buf_append(out, bytes, (size_t)sqlite3_column_bytes(blob->read, 0));
    sqlite3_reset(blob->read);
    return err == OK ? SQLITE_OK : capi__fail(blob->db, err, "%s", err_text(err));
}

static int
prepare_statements(sqlite3_blob *blob, const char *database, const char *table, const char *column,
                   bool writes)
{
    char *sql = sqlite3_mprintf("SELECT \"%w\" FROM \"%w\".\"%w\" WHERE rowid=?", column, database,
                                table);
    int code = sql == NULL ? SQLITE_NOMEM
                           : sqlite3_prepare_v2(blob->db, sql, -1, &blob->read, NULL);
    sqlite3_free(sql);
    if (code != SQLITE_OK || !writes) return code;
    sql = sqlite3_mprintf("UPDATE \"%w\".\"%w\" SET \"%w\"=?2 WHERE rowid=?1", database, table,
                          column);
    code = sql == NULL ? SQLITE_NOMEM : sqlite3_prepare_v2(blob->db, sql, -1, &blob->write, NULL);
    sqlite3_free(sql);
    return code;
}

int
sqlite3_blob_open(sqlite3 *db, const char *database, const char *table, const char *column,
                  sqlite3_int64 rowid, int writes, sqlite3_blob **blob_out)
{
    if (blob_out == NULL) return SQLITE_MISUSE;
    *blob_out = NULL;
    if (!capi__db_ok(db) || db->session == NULL || table == NULL || column == NULL) {
        return SQLITE_MISUSE;
    }
    sqlite3_blob *blob = MEM_NEW(sqlite3_blob);
    if (blob == NULL) return capi__fail(db, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    blob->db = db;
    blob->rowid = rowid;
    int code = prepare_statements(blob, database == NULL ? "main" : database, table, column,
                                  writes != 0);
    /* A double-quoted name that is no column would be a string. */
    if (code == SQLITE_OK && sqlite3_column_origin_name(blob->read, 0) == NULL) {
        code = capi__fail(db, ERR_SQL, "no such column: \"%s\"", column);
    }
    if (code == SQLITE_OK) code = read_value(blob, &blob->value, &blob->type);
    if (code != SQLITE_OK) {
        ErrMsg kept = {.sql_offset = -1};
        err_set(&kept, ERR_SQL, "%s", sqlite3_errmsg(db));
        sqlite3_blob_close(blob);
        capi__fail(db, ERR_SQL, "%s", err_message(&kept));
        err_clear(&kept);
        return code;
    }
    *blob_out = blob;
    return SQLITE_OK;
}

int
sqlite3_blob_close(sqlite3_blob *blob)
{
    if (blob == NULL) return SQLITE_OK;
    int code = blob->code;
    sqlite3_finalize(blob->read);
    sqlite3_finalize(blob->write);
    buf_free(&blob->value);
    mem_free(blob);
    return code;
}

int
sqlite3_blob_bytes(sqlite3_blob *blob)
{
    return blob == NULL || blob->is_expired ? 0 : (int)blob->value.bytes;
}

/* Is the range inside, and the row still what it was? */
static int
check_range(sqlite3_blob *blob, int bytes, int offset)
{
    if (blob == NULL) return SQLITE_MISUSE;
    if (blob->is_expired) return SQLITE_ABORT;
    if (bytes < 0 || offset < 0 || (i64)offset + bytes > (i64)blob->value.bytes) {
        return capi__fail(blob->db, ERR_SQL, "%s", err_text(ERR_SQL));
    }
    Buf now = {0};
    int type = 0;
    int code = read_value(blob, &now, &type);
    bool same = code == SQLITE_OK && type == blob->type &&
                slice_equal(buf_slice(&now), buf_slice(&blob->value));
    buf_free(&now);
    if (same) return SQLITE_OK;
    blob->is_expired = true;
    return capi__fail(blob->db, ERR_ABORT, "%s", err_text(ERR_ABORT));
}

int
sqlite3_blob_read(sqlite3_blob *blob, void *out, int bytes, int offset)
{
    int code = check_range(blob, bytes, offset);
    if (code == SQLITE_OK && bytes > 0) memcpy(out, blob->value.p + offset, (size_t)bytes);
    return code;
}

int
sqlite3_blob_write(sqlite3_blob *blob, const void *from, int bytes, int offset)
{
    if (blob != NULL && blob->write == NULL) {
        blob->code = capi__fail(blob->db, ERR_READONLY, "%s", err_text(ERR_READONLY));
        return blob->code;
    }
    int code = check_range(blob, bytes, offset);
    if (code != SQLITE_OK || bytes == 0) return code;
    memcpy(blob->value.p + offset, from, (size_t)bytes);
    int length = (int)blob->value.bytes;
    sqlite3_bind_int64(blob->write, 1, blob->rowid);
    if (blob->type == SQLITE_TEXT) {
        sqlite3_bind_text(blob->write, 2, (const char *)blob->value.p, length, SQLITE_STATIC);
    } else {
        sqlite3_bind_blob(blob->write, 2, blob->value.p, length, SQLITE_STATIC);
    }
    code = sqlite3_step(blob->write);
    int final = sqlite3_reset(blob->write);
    return code == SQLITE_DONE ? SQLITE_OK : final;
}

int
sqlite3_blob_reopen(sqlite3_blob *blob, sqlite3_int64 rowid)
{
    if (blob == NULL) return SQLITE_MISUSE;
    blob->rowid = rowid;
    blob->is_expired = false;
    int code = read_value(blob, &blob->value, &blob->type);
    blob->is_expired = code != SQLITE_OK;
    return code;
}
