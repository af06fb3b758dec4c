/*
 * database.c -- the databases of a server: names, files, and the pool of engines of each.
 *
 * A database is opened by the first client that needs it and stays open.  File names that SQL
 * gives (ATTACH, VACUUM INTO) are names of databases in the server's directory and nothing else.
 */
#include <stdio.h>
#include <string.h>

#include "rt/file.h"
#include "rt/time.h"
#include "server/server__conn.h"
#include "server/show.h"

bool
db__name_ok(Slice name)
{
    if (name.bytes == 0 || name.bytes >= DB_NAME_BYTES) return false;
    for (size_t i = 0; i < name.bytes; i++) {
        u8 c = name.p[i];
        bool good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
                    (c == '-' && i > 0);
        if (!good) return false;
    }
    return true;
}

/* DIR/NAME.weft; mem_alloc'd. */
static char *
path_of(const Server *server, Slice name)
{
    Buf path = {0};
    Err err = buf_printf(&path, "%s/%.*s.weft", server->options.dir, (int)name.bytes,
                         (const char *)name.p);
    if (err == OK) err = buf_append_byte(&path, 0);
    if (err == OK) return (char *)path.p;
    buf_free(&path);
    return NULL;
}

static SessionOptions
session_options(const Server *server, bool create)
{
    return (SessionOptions){
        .create = create,
        .beneath = server->options.dir, /* NULL without a directory. */
        .share_plans = true,
        .sync = PLANT(204) ? STORE_SYNC_OFF : (StoreSync)server->options.sync,
        .level = STORE_SNAPSHOT,
        .busy_timeout_ns = server->options.busy_timeout_ns,
        .pool_bytes = server->options.pool_bytes,
        .database_bytes_max = server->options.database_memory_bytes_max,
        .session_bytes_max = server->options.session_memory_bytes_max,
        .statement_bytes_max = server->options.statement_memory_bytes_max,
    };
}

/* ---- finding ---- */

static bool
file_exists(const char *path)
{
    RtStat stat;
    return rt_file_stat(NULL, path, &stat, NULL) == OK && stat.is_file;
}

static ServedDb *
db_new(Server *server, Slice name, Fault *fault)
{
    bool single = server->options.dir == NULL;
    char *path = single ? mem_strdup(server->options.path) : path_of(server, name);
    ServedDb *db = MEM_NEW(ServedDb);
    if (path == NULL || db == NULL) {
        fault__set(fault, 7, "SQLITE_NOMEM", "out of memory");
    } else if (!single && !server->options.create && !PLANT(219) && !file_exists(path)) {
        fault__set(fault, 14, "SQLITE_CANTOPEN", "no such database: %.*s", (int)name.bytes,
                   (const char *)name.p);
    } else {
        db->server = server;
        db->path = path;
        db->used_ns = rt_now_ns();
        if (!single) memcpy(db->name, name.p, name.bytes);
        return db;
    }
    mem_free(path);
    mem_free(db);
    return NULL;
}

static ServedDb *
db_listed(const Server *server, Slice name)
{
    for (ServedDb *db = server->databases; db != NULL; db = db->next)
        if (slice_equal(name, SLICE(db->name, strlen(db->name)))) return db;
    return NULL;
}

ServedDb *
db__find(Server *server, Slice name, Fault *fault)
{
    if (server->options.dir == NULL) {
        name = SLICE_NONE;
    } else if (!db__name_ok(name)) {
        fault__set(fault, 14, "SQLITE_CANTOPEN",
                   "a database name has 1 to %d letters a-z, digits, _ and -", DB_NAME_BYTES - 1);
        return NULL;
    }
    rt_mutex_lock(&server->lock);
    ServedDb *db = db_listed(server, name);
    rt_mutex_unlock(&server->lock);
    if (db != NULL) return db;
    ServedDb *made = db_new(server, name, fault);
    if (made == NULL) return NULL;
    rt_mutex_lock(&server->lock);
    db = db_listed(server, name); /* Another may have been faster. */
    if (db == NULL) {
        made->next = server->databases;
        server->databases = db = made;
        made = NULL;
    }
    rt_mutex_unlock(&server->lock);
    if (made != NULL) mem_free(made->path);
    mem_free(made);
    return db;
}

static Err
open_locked(ServedDb *db, Fault *fault)
{
    if (db->keeper != NULL) return OK;
    ErrMsg msg = {.sql_offset = -1};
    SessionOptions options = session_options(db->server, db->server->options.create || PLANT(219));
    Err err = session_open(db->server->process, db->path, &options, &db->keeper, &msg);
    if (err == OK) return OK;
    db->keeper = NULL;
    fault__set(fault, err_sqlite(err), err_sqlite_name(err_sqlite(err)), "%s", err_message(&msg));
    log_line(LOG_ERROR, "cannot open %s: %s", db->path, err_message(&msg));
    err_clear(&msg);
    return err;
}

Err
db__open(ServedDb *db, Fault *fault)
{
    rt_mutex_lock(&db->lock);
    Err err = open_locked(db, fault);
    rt_mutex_unlock(&db->lock);
    return err;
}

/* ---- engines ---- */

/* Does the client's token reach as far as that database? */
static bool
may_reach(const Seat *seat, const char *name, bool is_written)
{
    bool is_other = strcmp(seat->db->name, name) != 0;
    if (seat->rights.one_database && is_other && !PLANT(211)) return false;
    return !seat->rights.read_only || !is_written;
}

/* ATTACH 'name', VACUUM INTO 'name': a database of the directory; never a path. */
static Err
map_file(void *arg, const char *name, bool is_written, char **path_out, ErrMsg *msg)
{
    const Seat *seat = ((Engine *)arg)->seat;
    const ServedDb *db = seat->db;
    Slice text = SLICE(name, strlen(name));
    *path_out = NULL;
    if (db->server->options.dir == NULL || !db__name_ok(text) || !may_reach(seat, name, is_written))
        return err_set(msg, ERR_AUTH, "not authorized");
    *path_out = path_of(db->server, text);
    if (*path_out == NULL) return err_set(msg, ERR_NOMEM, NULL);
    if (db->server->options.create || file_exists(*path_out)) return OK;
    mem_free(*path_out);
    *path_out = NULL;
    return err_set(msg, ERR_CANTOPEN, "no such database: %s", name);
}

static void
engine_free(Engine *engine)
{
    for (u32 i = 0; i < ENGINE_CACHE; i++)
        mem_free(engine->cache[i].text);
    session_destroy(engine->session); /* With its statements. */
    mem_free(engine);
}

static Engine *
engine_new(ServedDb *db, Fault *fault)
{
    ErrMsg msg = {.sql_offset = -1};
    SessionOptions options = session_options(db->server, false);
    Engine *engine = MEM_NEW(Engine);
    if (engine == NULL) {
        fault__set(fault, 7, "SQLITE_NOMEM", "out of memory");
        return NULL;
    }
    Err err = session_open(db->server->process, db->path, &options, &engine->session, &msg);
    if (err != OK) {
        int code = err_sqlite(err);
        fault__set(fault, code, err_sqlite_name(code), "%s", err_message(&msg));
        log_line(LOG_ERROR, "cannot open a session: %s", err_message(&msg));
        err_clear(&msg);
        mem_free(engine);
        return NULL;
    }
    SessionHooks hooks = {
        .map_file = map_file,
        .map_file_arg = engine,
        .find_table_func = show__table_func,
    };
    session_set_hooks(engine->session, &hooks);
    session_set_functions(engine->session, show__functions(db->server));
    return engine;
}

Engine *
db__take(ServedDb *db, Fault *fault)
{
    rt_mutex_lock(&db->lock);
    bool good = open_locked(db, fault) == OK;
    Engine *engine = good ? db->idle : NULL;
    if (engine != NULL) {
        db->idle = engine->next;
        db->idle_count--;
    }
    rt_mutex_unlock(&db->lock);
    if (engine != NULL || !good) return engine;
    return engine_new(db, fault);
}

bool
db__give(ServedDb *db, Engine *engine)
{
    SessionOptions options = session_options(db->server, false);
    for (u32 i = 0; i < ENGINE_CACHE; i++)
        engine->cache[i].in_use = false;
    Seat *seat = engine->seat;
    engine->seat = NULL;
    if (!PLANT(202) && !session_reuse(engine->session, &options)) {
        engine->seat = seat;
        return false;
    }
    rt_mutex_lock(&db->lock);
    if (db->idle_count < POOL_ENGINES_MAX) {
        engine->next = db->idle;
        db->idle = engine;
        db->idle_count++;
        engine = NULL;
    }
    rt_mutex_unlock(&db->lock);
    if (engine != NULL) engine_free(engine);
    return true;
}

void
db__drop(Engine *engine)
{
    engine_free(engine);
}

/* ---- the end ---- */

/* Close the file: engines that are out keep it open until they come back and go. */
static void
db_close(ServedDb *db)
{
    while (db->idle != NULL) {
        Engine *engine = db->idle;
        db->idle = engine->next;
        engine_free(engine);
    }
    db->idle_count = 0;
    if (db->keeper == NULL) return;
    if (session_checkpoint(db->keeper) != OK)
        log_line(LOG_ERROR, "checkpoint of %s: %s", db->path,
                 err_message(session_error(db->keeper)));
    session_destroy(db->keeper);
    db->keeper = NULL;
}

void
db__close_idle(Server *server, u64 now_ns)
{
    if (server->options.dir == NULL) return;
    rt_mutex_lock(&server->lock);
    ServedDb *db = server->databases; /* The list only grows, at its head. */
    rt_mutex_unlock(&server->lock);
    for (; db != NULL; db = db->next) {
        rt_mutex_lock(&server->lock);
        bool idle = db->seats == 0 && now_ns > db->used_ns + server->options.database_timeout_ns;
        rt_mutex_unlock(&server->lock);
        if (!idle) continue;
        rt_mutex_lock(&db->lock);
        db_close(db);
        rt_mutex_unlock(&db->lock);
    }
}

Err
db__close_all(Server *server, ErrMsg *msg)
{
    Err err = OK;
    while (server->databases != NULL) {
        ServedDb *db = server->databases;
        server->databases = db->next;
        ASSERT(db->seats == 0);
        while (db->idle != NULL) {
            Engine *engine = db->idle;
            db->idle = engine->next;
            engine_free(engine);
        }
        if (db->keeper != NULL) {
            Err one = session_checkpoint(db->keeper);
            if (one != OK && err == OK)
                err = err_set(msg, ERR_IO, "checkpoint of %s: %s", db->path,
                              err_message(session_error(db->keeper)));
            session_destroy(db->keeper);
        }
        mem_free(db->path);
        mem_free(db);
    }
    return err;
}
