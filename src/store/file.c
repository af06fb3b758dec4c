/*
 * file.c -- the data file's life.
 *
 * Order of things, each step durable before the next: a log generation exists before a superblock
 * names it; a superblock names it before a commit is in it; what was read at an opening is written
 * again before anything is built on it; a checkpoint is complete before log is recycled.
 */
#include "store/file.h"

#include "rt/host.h"
#include "rt/random.h"
#include "store/recover.h"
#include "store/wal/wal.h"

#define LOG_START          ((u64)4096)      /* First position of a new store's log. */
#define CHECKPOINT_BYTES   ((u64)16 << 20)  /* Log that is always allowed. */
#define CHECKPOINT_MOST    ((u64)128 << 20) /* And never more, before a checkpoint begins. */
#define CHECKPOINT_HARD    4u               /* Times that: commits wait for the checkpoint. */
#define OPEN_TRIES         16u
#define POOL_BYTES_LEAST   ((u64)8 << 20)
#define POOL_SHARE         4u /* Of the machine's memory, unless told otherwise. */
#define SQLITE_MAGIC       "SQLite format 3"
#define SQLITE_MAGIC_BYTES 16u
#define IMAGE_MAGIC        "WEFTDB1" /* Of files before format 2. */

static void
file_free(StoreFile *file)
{
    if (file == NULL) return;
    ckpt_free(file->ckpt);
    rt_file_close(file->file);
    rt_dir_close(file->dir);
    mem_free(file->pinned.states);
    mem_free(file->name);
    mem_free(file);
}

/* ---- opening ---- */

/* An object with directory and names for `path`, which is absolute. */
static Err
file_new(const char *path, const StoreOptions *options, StoreFile **file_out, ErrMsg *msg)
{
    *file_out = NULL;
    const char *slash = strrchr(path, '/');
    ASSERT(slash != NULL);
    size_t dir_bytes = slash == path ? 1 : (size_t)(slash - path);
    StoreFile *file = MEM_NEW(StoreFile);
    char *dir_name = mem_strndup(path, dir_bytes);
    Err err = ERR_NOMEM;
    if (file == NULL || dir_name == NULL) goto done;
    file->name = mem_strdup(slash + 1);
    if (file->name == NULL) goto done;
    err = rt_dir_open(dir_name, &file->dir, msg);
    if (err == ERR_NOTFOUND) {
        err = err_set(msg, ERR_CANTOPEN, "unable to open database file: no directory %s", dir_name);
    }
    if (err != OK) goto done;
    if (options->beneath != NULL) rt_dir_confine(file->dir);
    *file_out = file;
    file = NULL;

done:
    if (err == ERR_NOMEM) err_set(msg, err, "out of memory");
    mem_free(dir_name);
    file_free(file);
    return err;
}

static Err
owned(const StoreFile *file, const RtOwner *owner, ErrMsg *msg)
{
    if (owner->pid == 0) {
        return err_set(msg, ERR_OWNED, "%s is in use by another process", file->name);
    }
    if (owner->is_self) {
        return err_set(msg, ERR_OWNED, "%s is in use by another copy of the engine in this process",
                       file->name);
    }
    return err_set(msg, ERR_OWNED, "%s is in use by process %lld (%s)", file->name,
                   (long long)owner->pid, owner->program[0] == 0 ? "?" : owner->program);
}

/* Open and own the file; what we own must be what the name means now. */
static Err
file_take(StoreFile *file, const StoreOptions *options, ErrMsg *msg)
{
    u32 flags = RT_FILE_READ;
    if (!options->read_only) flags |= RT_FILE_WRITE;
    if (options->create && !options->read_only) flags |= RT_FILE_CREATE;
    for (u32 i = 0; i < OPEN_TRIES; i++) {
        Err err = rt_file_open(file->dir, file->name, flags, &file->file, msg);
        if (err == ERR_NOTFOUND) {
            return err_set(msg, ERR_CANTOPEN, "unable to open database file: no file %s",
                           file->name);
        }
        if (err != OK) return err;
        RtOwner owner = {0};
        err = rt_file_own(file->file, !options->read_only, &owner, NULL);
        if (err == ERR_OWNED) return owned(file, &owner, msg);
        if (err != OK) return err_set(msg, err, "%s cannot be locked", file->name);
        RtFileId id;
        RtStat stat;
        err = rt_file_id(file->file, &id, msg);
        if (err != OK) return err;
        err = rt_file_stat(file->dir, file->name, &stat, msg);
        if (err == OK && stat.id.device == id.device && stat.id.inode == id.inode) return OK;
        if (err != OK && err != ERR_NOTFOUND) return err;
        err_clear(msg);
        rt_file_close(file->file);
        file->file = NULL;
    }
    return err_set(msg, ERR_CANTOPEN, "unable to open database file: %s keeps being replaced",
                   file->name);
}

/* A path as a shell takes it. */
static Err
append_quoted(Buf *text, const char *path, size_t bytes, const char *ending)
{
    bool plain = true;
    for (size_t i = 0; i < bytes; i++) {
        char c = path[i];
        plain = plain && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
                          c == '/' || (c >= '0' && c <= '9') || c == '_' || (c == '-' && i > 0));
    }
    Err err = plain ? OK : buf_append_byte(text, '\'');
    for (size_t i = 0; err == OK && i < bytes; i++)
        err = path[i] == '\'' ? buf_append_text(text, "'\\''") : buf_append(text, &path[i], 1);
    if (err == OK) err = buf_append_text(text, ending);
    return err == OK && !plain ? buf_append_byte(text, '\'') : err;
}

/* A SQLite database: say which command brings its contents over. */
static Err
foreign_sqlite(const char *path, ErrMsg *msg)
{
    Buf text = {0};
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    bool ending = dot != NULL && (slash == NULL || dot > slash + 1) && strcmp(dot, ".weft") != 0;
    Err err = buf_printf(&text,
                         "%s is a SQLite database; to bring its contents over run: "
                         "weft import ",
                         path);
    if (err == OK) err = append_quoted(&text, path, strlen(path), "");
    if (err == OK) err = buf_append_byte(&text, ' ');
    if (err == OK)
        err = append_quoted(&text, path, ending ? (size_t)(dot - path) : strlen(path), ".weft");
    if (err == OK)
        err_set(msg, ERR_NOTADB, "%.*s", (int)text.bytes, (const char *)text.p);
    else
        err_set(msg, ERR_NOTADB, "%s is a SQLite database", path);
    buf_free(&text);
    return ERR_NOTADB;
}

/* The file has no superblock that is whole: say what it is. */
static Err
foreign(const Store *store, const StoreFile *file, bool ours, ErrMsg *msg)
{
    u8 magic[SQLITE_MAGIC_BYTES] = {0};
    size_t got;
    Err err = rt_file_read(file->file, 0, magic, sizeof(magic), &got, msg);
    if (err != OK) return err;
    if (got == sizeof(magic) && memcmp(magic, SQLITE_MAGIC, sizeof(magic)) == 0) {
        return foreign_sqlite(store->path, msg);
    }
    for (u32 copy = 0; copy < 4 && !ours; copy++) {
        err = rt_file_read(file->file, copy * (u64)SUPER_COPY_BYTES, magic, 8, &got, msg);
        if (err != OK) return err;
        if (got == 8 && memcmp(magic, IMAGE_MAGIC, sizeof(IMAGE_MAGIC)) == 0) {
            return err_set(msg, ERR_VERSION, "%s: file format 1 is not supported any more",
                           file->name);
        }
    }
    if (ours) {
        return err_set(msg, ERR_CORRUPT, "%s is damaged: no superblock of it is intact",
                       file->name);
    }
    return err_set(msg, ERR_NOTADB, "file is not a database: %s", file->name);
}

static Err
log_attach(Store *store, StoreFile *file, const WalStart *start, ErrMsg *msg)
{
    if (store->read_only) return OK;
    Err err = wal_open(file->dir, file->name, &store->commit_latch, start, &store->wal);
    if (err != OK) return err_set(msg, err, "out of memory");
    wal_watch_failure(store->wal, &store->failed);
    ckpt_watch_failure(file->ckpt, &store->failed);
    return OK;
}

/* Frames of the pool for this store. */
static u32
frames_of(const StoreOptions *options, u32 page_bytes)
{
    u64 bytes = options->pool_bytes;
    if (bytes == 0) bytes = rt_memory_bytes() / POOL_SHARE;
    u64 frames = MAX_OF(bytes, POOL_BYTES_LEAST) / page_bytes;
    return (u32)MIN_OF(frames, (u64)U32_MAX / 2);
}

static Err
pool_attach(Store *store, StoreFile *file, u32 frames, ErrMsg *msg)
{
    PoolClient client = ckpt_pool_client(file->ckpt);
    BtreePages pages = ckpt_pages(file->ckpt);
    u32 page_bytes = ckpt_super(file->ckpt)->page_bytes;
    Err err = store__pages_open(store, page_bytes, frames, &client, &pages);
    if (err == OK) err = ckpt_attach(file->ckpt, store->pages_file);
    return err == OK ? OK : err_set(msg, err, "out of memory");
}

/* A file without a byte: a store without a row. */
static Err
open_empty(Store *store, StoreFile *file, const StoreOptions *options, ErrMsg *msg)
{
    bool strays;
    WalStart start = {.position = LOG_START, .durable = LOG_START};
    Err err = wal_scan_strays(file->dir, file->name, 0, 0, &strays, &start.segment_no, msg);
    if (err != OK) return err;
    if (strays) {
        return err_set(msg, ERR_CORRUPT, "%s is empty, but the log of a database lies beside it",
                       file->name);
    }
    start.store_id = rt_random_u64() | 1;
    file->is_new = file->name_unsynced = true;
    u32 page_bytes = store__page_bytes_of(options);
    u32 frames = frames_of(options, page_bytes);
    err = ckpt_create(file->file, page_bytes, start.store_id, frames, &file->ckpt, msg);
    if (err == OK) err = pool_attach(store, file, frames, msg);
    if (err == OK) err = recover__checkpoint(store, msg);
    return err == OK ? log_attach(store, file, &start, msg) : err;
}

static Err
open_clean(StoreFile *file, WalStart *start, ErrMsg *msg)
{
    const Super *super = ckpt_super(file->ckpt);
    bool strays;
    Err err = wal_scan_strays(file->dir, file->name, super->store_id, super->cut_lsn, &strays,
                              &start->segment_no, msg);
    if (err != OK) return err;
    if (strays) {
        return err_set(msg, ERR_CORRUPT,
                       "%s is damaged: its log is newer than its superblock (superblock lost)",
                       file->name);
    }
    start->position = start->durable = super->cut_lsn;
    return OK;
}

static Err
open_log(Store *store, StoreFile *file, WalStart *start, ErrMsg *msg)
{
    WalScanEnd end;
    Err err = recover__log(store, !store->read_only, &end, msg);
    if (err != OK) return err;
    file->has_log = true;
    start->position = start->durable = end.position;
    start->previous_generation = end.last_generation;
    start->segment_no = end.segment_no_next;
    return OK;
}

static Err
open_super(Store *store, StoreFile *file, const Super *super, const StoreOptions *options,
           ErrMsg *msg)
{
    u32 frames = frames_of(options, super->page_bytes);
    WalStart start = {.store_id = super->store_id};
    Err err = ckpt_open(file->file, super, frames, &file->ckpt, msg);
    if (err == OK && store->read_only) ckpt_set_read_only(file->ckpt);
    if (err == OK) err = pool_attach(store, file, frames, msg);
    bool is_clean = (super->flags & SUPER_CLEAN) != 0;
    if (err == OK && !is_clean && !store->read_only) err = ckpt_settle(file->ckpt, msg);
    if (err == OK) err = recover__checkpoint(store, msg);
    if (err != OK) return err;
    err = is_clean ? open_clean(file, &start, msg) : open_log(store, file, &start, msg);
    return err == OK ? log_attach(store, file, &start, msg) : err;
}

/*
 * Was the file made, and the power lost before its first superblock was whole?  Then nothing was
 * ever in it: it has no byte beyond the superblocks, and bears our magic, or is zeros but for the
 * places of the first one, of which any part may have been written.  A log that holds anything is
 * found by who opens it as empty.
 */
static Err
is_unborn(StoreFile *file, u64 size_bytes, bool ours, bool *unborn_out, ErrMsg *msg)
{
    *unborn_out = false;
    if (size_bytes > SUPER_COPIES_BYTES) return OK;
    u8 *bytes = (u8 *)mem_alloc(SUPER_COPIES_BYTES);
    if (bytes == NULL) return err_set(msg, ERR_NOMEM, "out of memory");
    size_t got;
    Err err = rt_file_read(file->file, 0, bytes, SUPER_COPIES_BYTES, &got, msg);
    bool blank = true;
    for (size_t i = 0; err == OK && i < got; i++) {
        bool is_first = i >= SUPER_COPIES_BYTES / 2 && i % SUPER_COPY_BYTES < sizeof(Super);
        blank = blank && (bytes[i] == 0 || is_first);
    }
    *unborn_out = err == OK && (ours || blank);
    mem_free(bytes);
    return err;
}

Err
file__open(Store *store, const StoreOptions *options, ErrMsg *msg)
{
    StoreFile *file;
    u64 size_bytes;
    Err err = file_new(store->path, options, &file, msg);
    if (err != OK) return err;
    store->file = file;
    err = file_take(file, options, msg);
    if (err == OK) err = rt_file_size(file->file, &size_bytes, msg);
    if (err == OK && size_bytes == 0) {
        err = open_empty(store, file, options, msg);
    } else if (err == OK) {
        Super super;
        bool found, ours;
        err = super_read(file->file, &super, &found, &ours, msg);
        bool unborn = false;
        if (err == OK && !found) err = is_unborn(file, size_bytes, ours, &unborn, msg);
        if (err == OK && !found && !unborn) err = foreign(store, file, ours, msg);
        if (err == OK) {
            err = unborn ? open_empty(store, file, options, msg)
                         : open_super(store, file, &super, options, msg);
        }
    }
    if (err != OK) return err;
    rt_store_relaxed(&file->cut_lsn, ckpt_super(file->ckpt)->cut_lsn);
    rt_store_relaxed(&file->file_bytes, size_bytes);
    file->is_open = true;
    return OK;
}

/* ---- the log's beginning ---- */

/* The name of a new file must be durable before a commit in it is. */
static Err
name_sync(StoreFile *file, ErrMsg *msg)
{
    if (!file->name_unsynced || PLANT(107)) return OK;
    Err err = rt_dir_sync(file->dir, msg);
    if (err == OK) file->name_unsynced = false;
    return err;
}

bool
file__log_is_ready(const Store *store)
{
    return rt_load_acquire(&store->file->log_ready) != 0;
}

Err
file__begin_log(Store *store, ErrMsg *msg)
{
    StoreFile *file = store->file;
    rt_mutex_lock(&file->mutex);
    Err err = OK;
    if (!wal_is_begun(store->wal)) err = wal_begin(store->wal, msg);
    if (err == OK && !file->has_log) {
        Super super = *ckpt_super(file->ckpt);
        super.flags &= ~SUPER_CLEAN;
        super.log_generation = wal_generation(store->wal);
        /* Nothing has been committed since the checkpoint: its cut moves to where the log
           starts. */
        rt_latch_acquire(&store->commit_latch);
        super.cut_lsn = super.oldest_lsn = wal_next(store->wal);
        rt_latch_release(&store->commit_latch);
        if (file->is_new) super.cut_ts = 1;
        super.tree_next = MAX_OF(super.tree_next, TREE_ROOT + 1);
        err = ckpt_write_super(file->ckpt, &super, msg);
        if (err == OK) err = name_sync(file, msg);
        if (err == OK) {
            file->has_log = true;
            file->is_new = false;
            rt_store_relaxed(&file->cut_lsn, super.cut_lsn);
        }
    }
    if (err == OK || PLANT(110)) rt_store_release(&file->log_ready, 1);
    rt_mutex_unlock(&file->mutex);
    return err;
}

/* ---- checkpoints ---- */

static void
note_file_bytes(StoreFile *file)
{
    u64 size_bytes;
    if (rt_file_size(file->file, &size_bytes, NULL) == OK) {
        rt_store_relaxed(&file->file_bytes, size_bytes);
    }
}

Err
file__checkpoint(Store *store, bool closing, ErrMsg *msg)
{
    StoreFile *file = store->file;
    if (store->read_only) return OK;
    if (store__failed(store)) {
        return err_set(msg, ERR_IO, "%s", store__failure_text(store));
    }
    if (!file__log_is_ready(store)) {
        if (!file->has_log) return OK; /* Nothing has changed since the last one. */
        Err err = file__begin_log(store, msg);
        if (err != OK) return err;
    }
    u64 started_ns = rt_now_ns();
    CkptClient client = checkpoint__client(store);
    rt_mutex_lock(&file->mutex);
    Err err = ckpt_run(file->ckpt, &client, closing ? SUPER_CLEAN : 0, msg);
    if (err == OK) {
        const Super *super = ckpt_super(file->ckpt);
        rt_store_relaxed(&file->cut_lsn, super->cut_lsn);
        wal_recycle(store->wal, super->oldest_lsn);
        ckpt_trim(file->ckpt);
        note_file_bytes(file);
    }
    rt_mutex_unlock(&file->mutex);
    if (err != OK) return err;
    rt_fetch_add(&store->counters.checkpoints, 1);
    rt_store_relaxed(&store->counters.checkpoint_ns_last, rt_now_ns() - started_ns);
    return OK;
}

/* Log that may gather before a checkpoint begins. */
static u64
log_allowed(const StoreFile *file)
{
    u64 share = rt_load_relaxed(&file->file_bytes) / 4;
    return MIN_OF(MAX_OF(CHECKPOINT_BYTES, share), CHECKPOINT_MOST);
}

bool
file__is_due(const Store *store)
{
    const StoreFile *file = store->file;
    if (file == NULL || store->wal == NULL || store__failed(store)) return false;
    return wal_bytes_since(store->wal, rt_load_relaxed(&file->cut_lsn)) > log_allowed(file);
}

static void
checkpoint_quietly(Store *store)
{
    ErrMsg msg = {0};
    if (file__checkpoint(store, false, &msg) != OK) {
        log_line(LOG_WARN, "checkpoint of %s: %s", store->path, err_message(&msg));
    }
    err_clear(&msg);
}

static void
helper_main(void *arg)
{
    Store *store = (Store *)arg;
    StoreFile *file = store->file;
    rt_mutex_lock(&file->helper_mutex);
    while (!file->helper_stops) {
        if (!file->helper_wanted) {
            rt_cond_wait(&file->helper_cond, &file->helper_mutex);
            continue;
        }
        rt_mutex_unlock(&file->helper_mutex);
        checkpoint_quietly(store);
        rt_mutex_lock(&file->helper_mutex);
        file->helper_wanted = false;
    }
    rt_mutex_unlock(&file->helper_mutex);
}

void
file__checkpoint_soon(Store *store)
{
    StoreFile *file = store->file;
    rt_mutex_lock(&file->helper_mutex);
    bool asked = file->helper_wanted;
    file->helper_wanted = true;
    if (!file->helper_tried) {
        file->helper_tried = true;
        Err err = rt_thread_start(store->process, helper_main, store, "weft store", &file->helper);
        if (err != OK) file->helper = NULL; /* Then whoever comes here does it. */
    }
    bool has_helper = file->helper != NULL;
    if (!asked) rt_cond_signal(&file->helper_cond);
    rt_mutex_unlock(&file->helper_mutex);
    if (!has_helper && !asked) {
        checkpoint_quietly(store);
        rt_mutex_lock(&file->helper_mutex);
        file->helper_wanted = false;
        rt_mutex_unlock(&file->helper_mutex);
        return;
    }
    u64 allowed = log_allowed(file);
    if (wal_bytes_since(store->wal, rt_load_relaxed(&file->cut_lsn)) < allowed * CHECKPOINT_HARD) {
        return;
    }
    /* Commits come faster than checkpoints: wait for the one that runs. */
    rt_mutex_lock(&file->mutex);
    rt_mutex_unlock(&file->mutex);
}

void
file__finish(Store *store)
{
    StoreFile *file = store->file;
    if (file == NULL || !file->is_open) return;
    rt_mutex_lock(&file->helper_mutex);
    file->helper_stops = true;
    rt_cond_signal(&file->helper_cond);
    rt_mutex_unlock(&file->helper_mutex);
    rt_thread_join(file->helper);
    file->helper = NULL;
    bool changed = file->has_log && !store->read_only;
    while (settle__run(store, U64_MAX)) {
    }
    if (!changed || store__failed(store) || ckpt_has_failed(file->ckpt)) return;
    ErrMsg msg = {0};
    Err err = file__checkpoint(store, true, &msg);
    if (err == OK) err = wal_remove_all(file->dir, file->name, &msg);
    if (err != OK) {
        /* Nothing is lost: the next open recovers. */
        log_line(LOG_WARN, "closing %s: %s", store->path, err_message(&msg));
    }
    err_clear(&msg);
}

void
file__close(Store *store)
{
    file_free(store->file);
    store->file = NULL;
}
