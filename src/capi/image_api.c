/*
 * image_api.c -- sqlite3_serialize and sqlite3_deserialize: a database as the bytes of a SQLite
 * file, and back.
 *
 * Between the connection and the bytes stands a database in memory of a session of its own.
 * Serializing copies one snapshot into it and exports that; deserializing imports the whole image
 * before one transaction puts it in the place of what is there.  So neither disturbs the program's
 * transaction and hooks, any schema will do, and an image that turns out bad changes nothing.
 */
#include "capi/capi.h"
#include "capi/host_func.h"
#include "rt/process.h"
#include "transfer/transfer.h"

#define FIRST_BYTES ((size_t)4096)

/* ---- out ---- */

/* A file in memory. */
typedef struct Image {
    u8 *p;
    size_t bytes, room;
} Image;

static Err
image_write(void *arg, u64 offset, const void *bytes, size_t count, ErrMsg *msg)
{
    Image *image = arg;
    if (offset > SIZE_MAX / 4 || count > SIZE_MAX / 4) return err_set(msg, ERR_TOOBIG, NULL);
    size_t end = (size_t)offset + count;
    if (end > image->room) {
        size_t room = MAX_OF(FIRST_BYTES, image->room);
        while (room < end)
            room *= 2;
        u8 *bigger = mem_realloc(image->p, room);
        if (bigger == NULL) return err_set(msg, ERR_NOMEM, NULL);
        memset(bigger + image->room, 0, room - image->room);
        image->p = bigger;
        image->room = room;
    }
    if (count > 0) memcpy(image->p + offset, bytes, count);
    image->bytes = MAX_OF(image->bytes, end);
    return OK;
}

/* The session in between.  The connection is not locked: session_copy() does that, on a task of its
   own. */
static Err
between_open(sqlite3 *db, Session **session_out, ErrMsg *msg)
{
    SessionOptions options = {.create = true, .sync = STORE_SYNC_OFF, .level = STORE_SNAPSHOT};
    Err err = session_open(rt_process_default(), NULL, &options, session_out, msg);
    if (err == OK) host__lend(db, *session_out);
    return err;
}

static Err
image_make(sqlite3 *db, const char *name, Image *image, ErrMsg *msg)
{
    Session *between = NULL;
    TransferCounts counts;
    TransferExport options = {.vacuum = TRANSFER_AS_IMPORTED};
    SqfTarget target = {image, image_write};
    u64 bytes = 0;
    Err err = between_open(db, &between, msg);
    if (err != OK) return err;
    err = session_copy(db->session, name, between, "main");
    if (err != OK)
        err_set(msg, err, "%s", err_message(session_error(between)));
    else
        err = transfer_export(between, &options, &target, &counts, &bytes, msg);
    ASSERT(err != OK || bytes == image->bytes);
    session_destroy(between);
    return err;
}

unsigned char *
sqlite3_serialize(sqlite3 *db, const char *name, sqlite3_int64 *bytes_out, unsigned int flags)
{
    if (bytes_out != NULL) *bytes_out = -1;
    if (!capi__db_ok(db) || db->session == NULL) return NULL;
    if (name == NULL) name = "main";
    if (!session_has_store(db->session, name)) {
        (void)capi__result(db, OK); /* No bytes is the whole answer, as in SQLite. */
        return NULL;
    }
    Image image = {0};
    ErrMsg msg = {.sql_offset = -1};
    Err err = image_make(db, name, &image, &msg);
    if (err != OK)
        (void)capi__fail(db, err, "%s", err_message(&msg));
    else
        (void)capi__result(db, OK);
    err_clear(&msg);
    if (err == OK && bytes_out != NULL) *bytes_out = (sqlite3_int64)image.bytes;
    /* There is no memory that holds a database in this form: NOCOPY only tells its size. */
    if (err != OK || (flags & SQLITE_SERIALIZE_NOCOPY) != 0) {
        mem_free(image.p);
        return NULL;
    }
    return image.p; /* sqlite3_free() is mem_free(). */
}

/* ---- in ---- */

static Err
image_import(Session *between, Slice image, ErrMsg *msg)
{
    static const TransferImport options = {.keep_virtual = true};
    SqfOpen open = {.name = "image", .database = sqf_source_memory(&image)};
    TransferCounts counts;
    Sqf *sqf = NULL;
    Err err = sqf_open(&open, &sqf, msg);
    if (err == ERR_NOTADB) return err_set(msg, err, "%s", err_text(err));
    if (err == OK) err = transfer_import(sqf, between, &options, &counts, msg);
    sqf_close(sqf);
    return err;
}

static Err
image_take(sqlite3 *db, const char *name, Slice image, ErrMsg *msg)
{
    Session *between = NULL;
    Err err = between_open(db, &between, msg);
    if (err != OK) return err;
    if (image.bytes > 0) err = image_import(between, image, msg); /* Else: an empty database. */
    if (err == OK) {
        err = session_copy(between, "main", db->session, name);
        if (err != OK) err_set(msg, err, "%s", err_message(session_error(db->session)));
    }
    session_destroy(between);
    return err;
}

/* May the database be replaced now? */
static Err
check_target(sqlite3 *db, const char *name, ErrMsg *msg)
{
    if (session_file(db->session, name) == NULL)
        return err_set(msg, ERR_SQL, "unknown database %s", name);
    if (sqlite3_stricmp(name, "temp") == 0)
        return err_set(msg, ERR_SQL, "the temp database cannot be replaced");
    if (!session_autocommit(db->session) || session_is_running(db->session) || db->backups > 0)
        return err_set(msg, ERR_BUSY, "%s", err_text(ERR_BUSY));
    return OK;
}

static Err
replace(sqlite3 *db, const char *name, Slice image, bool read_only, ErrMsg *msg)
{
    Err err = check_target(db, name, msg);
    if (err != OK) return err;
    bool former = session_set_database_read_only(db->session, name, false);
    err = image_take(db, name, image, msg);
    (void)session_set_database_read_only(db->session, name, err == OK ? read_only : former);
    return err;
}

int
sqlite3_deserialize(sqlite3 *db, const char *name, unsigned char *image, sqlite3_int64 bytes,
                    sqlite3_int64 room, unsigned int flags)
{
    int code = SQLITE_MISUSE;
    bool is_image = bytes >= 0 && room >= 0 && (image != NULL || bytes == 0);
    if (capi__db_ok(db) && db->session != NULL && is_image) {
        ErrMsg msg = {.sql_offset = -1};
        Err err = replace(db, name == NULL ? "main" : name, SLICE(image, (size_t)bytes),
                          (flags & SQLITE_DESERIALIZE_READONLY) != 0, &msg);
        code = err == OK ? capi__result(db, OK) : capi__fail(db, err, "%s", err_message(&msg));
        err_clear(&msg);
    }
    /* The content is the database's now: the bytes are needed no more. */
    if ((flags & SQLITE_DESERIALIZE_FREEONCLOSE) != 0) sqlite3_free(image);
    return code;
}
