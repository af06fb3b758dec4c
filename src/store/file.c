/*
 * file.c -- the data file's life.
 *
 * Order of things, each step durable before the next: a log generation exists before a head names
 * it; a head names it before a commit is in it; an image is complete before it takes the file's
 * name; the name is durable before log is recycled.
 */
#include "store/file.h"

#include <stdio.h>

#include "rt/random.h"
#include "store/recover.h"
#include "store/wal/wal.h"

#define LOG_START          ((u64)4096)     /* First position of a new store's log. */
#define CHECKPOINT_BYTES   ((u64)16 << 20) /* Log that is always allowed. */
#define CHECKPOINT_HARD    4u              /* Times that: commits wait for the checkpoint. */
#define FETCH_ROWS         2048u
#define FETCH_BYTES        ((size_t)1 << 20)
#define OPEN_TRIES         16u
#define SQLITE_MAGIC       "SQLite format 3"
#define SQLITE_MAGIC_BYTES 16u

static void
file_free(StoreFile *file)
{
    if (file == NULL) return;
    rt_file_close(file->file);
    rt_dir_close(file->dir);
    mem_free(file->name);
    mem_free(file->temp_name);
    mem_free(file);
}

/* ---- opening ---- */

/* An object with directory and names for `path`, which is absolute. */
static Err
file_new(const char *path, StoreFile **file_out, ErrMsg *msg)
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
    size_t temp_bytes = strlen(slash + 1) + sizeof("-new");
    file->temp_name = (char *)mem_alloc(temp_bytes);
    if (file->name == NULL || file->temp_name == NULL) goto done;
    snprintf(file->temp_name, temp_bytes, "%s-new", slash + 1);
    err = rt_dir_open(dir_name, &file->dir, msg);
    if (err == ERR_NOTFOUND) {
        err = err_set(msg, ERR_CANTOPEN, "unable to open database file: no directory %s", dir_name);
    }
    if (err != OK) goto done;
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

/* Open and own the file; what we own must be what the name means now, for a checkpoint of the
   former owner may have put a new file there. */
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

/* The file has no head of ours: say what it is. */
static Err
foreign(const Store *store, const StoreFile *file, u64 size_bytes, ErrMsg *msg)
{
    u8 magic[SQLITE_MAGIC_BYTES] = {0};
    size_t got;
    Err err = rt_file_read(file->file, 0, magic, sizeof(magic), &got, msg);
    if (err != OK) return err;
    if (got == sizeof(magic) && memcmp(magic, SQLITE_MAGIC, sizeof(magic)) == 0) {
        return foreign_sqlite(store->path, msg);
    }
    bool ours = false;
    for (u32 copy = 0; copy < 4; copy++) {
        err = rt_file_read(file->file, copy * (u64)IMAGE_HEAD_BYTES, magic, 8, &got, msg);
        if (err != OK) return err;
        ours = ours || (got == 8 && load_u64(magic) == IMAGE_MAGIC);
    }
    if (ours || size_bytes < IMAGE_DATA_START) {
        /* Too short for any file of ours, or with a head that does not stand up. */
        if (ours) {
            return err_set(msg, ERR_CORRUPT, "%s is damaged: no head of it is intact", file->name);
        }
    }
    return err_set(msg, ERR_NOTADB, "file is not a database: %s", file->name);
}

static Err
log_attach(Store *store, StoreFile *file, const WalStart *start, ErrMsg *msg)
{
    if (store->read_only) return OK;
    Err err = wal_open(file->dir, file->name, &store->commit_latch, start, &store->wal);
    return err == OK ? OK : err_set(msg, err, "out of memory");
}

/* A file without a byte: a store without a row. */
static Err
open_empty(Store *store, StoreFile *file, ErrMsg *msg)
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
    file->head = (ImageHead){.store_id = start.store_id,
                             .cut_ts = 1,
                             .cut_lsn = LOG_START,
                             .oldest_lsn = LOG_START,
                             .tree_next = TREE_ROOT + 1};
    Tree *tree;
    err = store__tree_make(store, TREE_ROOT, STORE_TREE_BYTES, &tree);
    if (err != OK) return err_set(msg, err, "out of memory");
    rt_store_relaxed(&tree->created_ts, 1);
    return log_attach(store, file, &start, msg);
}

/* What was read may lie in the kernel's cache only: before anything is built on it, it is written
   again and synced. */
static Err
head_rewrite(StoreFile *file, ErrMsg *msg)
{
    Err err = image_head_write(file->file, &file->head, msg);
    return err == OK ? rt_file_sync(file->file, msg) : err;
}

static Err
open_image(Store *store, StoreFile *file, ErrMsg *msg)
{
    const ImageHead *head = &file->head;
    file->has_image = true;
    Err err = recover__image(store, file->file, head, msg);
    if (err != OK) return err;
    WalStart start = {.store_id = head->store_id};
    if ((head->flags & IMAGE_CLEAN) != 0) {
        bool strays;
        err = wal_scan_strays(file->dir, file->name, head->store_id, head->cut_lsn, &strays,
                              &start.segment_no, msg);
        if (err != OK) return err;
        if (strays) {
            return err_set(msg, ERR_CORRUPT,
                           "%s is damaged: its log is newer than its head (head lost)", file->name);
        }
        start.position = start.durable = head->cut_lsn;
        return log_attach(store, file, &start, msg);
    }
    WalScanEnd end;
    err = recover__log(store, file->dir, file->name, head, !store->read_only, &end, msg);
    if (err != OK) return err;
    file->has_log = true;
    start.position = start.durable = end.position;
    start.previous_generation = end.last_generation;
    start.segment_no = end.segment_no_next;
    if (!store->read_only && !PLANT(103)) err = head_rewrite(file, msg);
    return err == OK ? log_attach(store, file, &start, msg) : err;
}

Err
file__open(Store *store, const StoreOptions *options, ErrMsg *msg)
{
    StoreFile *file;
    u64 size_bytes;
    Err err = file_new(store->path, &file, msg);
    if (err != OK) return err;
    err = file_take(file, options, msg);
    if (err == OK) err = rt_file_size(file->file, &size_bytes, msg);
    if (err == OK && size_bytes == 0) {
        err = open_empty(store, file, msg);
    } else if (err == OK) {
        bool found;
        err = image_head_read(file->file, &file->head, &found, msg);
        if (err == OK)
            err = found ? open_image(store, file, msg) : foreign(store, file, size_bytes, msg);
    }
    if (err != OK) {
        wal_close(store->wal);
        store->wal = NULL;
        file_free(file);
        return err;
    }
    rt_store_relaxed(&file->cut_lsn, file->head.cut_lsn);
    rt_store_relaxed(&file->file_bytes, size_bytes);
    store->file = file;
    return OK;
}

/* ---- images ---- */

static Err
write_tree(StoreTxn *txn, Tree *tree, StoreCursor *cursor, ImageWriter *writer)
{
    Err err = image_writer_tree(writer, tree->id, (StoreTreeKind)tree->kind);
    if (err != OK) return err;
    bool found;
    store_cursor_rebind(cursor, txn, tree->id);
    err = store_cursor_seek(cursor, STORE_SEEK_FIRST, SLICE_NONE, &found);
    while (err == OK && found) {
        StoreRun run;
        err = store_cursor_fetch(cursor, FETCH_ROWS, FETCH_BYTES, false, &run);
        for (u32 i = 0; err == OK && i < run.rows; i++) {
            err = image_writer_row(writer, run.key[i], run.value[i]);
        }
        found = !run.end;
    }
    return err;
}

/* All trees that exist in the transaction's snapshot. */
static Err
write_trees(Store *store, StoreTxn *txn, ImageWriter *writer)
{
    StoreCursor *cursor;
    Err err = store_cursor_open(txn, TREE_ROOT, &cursor);
    if (err != OK) return err;
    u32 end = rt_load_acquire(&store->tree_next);
    for (TreeId id = 1; id < end && err == OK; id++) {
        Tree *tree = store__tree(store, id);
        if (tree == NULL) continue;
        u64 created = rt_load_acquire(&tree->created_ts);
        u64 dropped = rt_load_acquire(&tree->dropped_ts);
        if (created == 0 || created > txn->snapshot) continue;
        if (dropped != 0 && dropped <= txn->snapshot) continue;
        err = write_tree(txn, tree, cursor, writer);
    }
    store_cursor_close(cursor);
    return err == OK ? image_writer_end(writer) : err;
}

/* Fill and sync a new file from the snapshot. */
static Err
write_image(Store *store, StoreTxn *txn, RtFile *to, ImageHead *head, ErrMsg *msg)
{
    ImageWriter writer;
    head->image_id = rt_random_u64();
    Err err = image_writer_start(&writer, to, head->image_id, msg);
    if (err == OK) err = write_trees(store, txn, &writer);
    if (err == OK) {
        head->image_blocks = writer.block_no;
        head->rows = writer.rows;
        head->tree_next = rt_load_acquire(&store->tree_next);
        err = image_head_write(to, head, msg);
    }
    if (err == OK) err = rt_file_sync(to, msg);
    image_writer_free(&writer);
    return err;
}

/* What the name means must be durable before anything that only the former file needs goes. */
static Err
name_sync(StoreFile *file, ErrMsg *msg)
{
    if (!file->name_unsynced || PLANT(107)) return OK;
    Err err = rt_dir_sync(file->dir, msg);
    if (err == OK) file->name_unsynced = false;
    return err;
}

/*
 * Write an image beside the file and give it the file's name.  On OK *head describes the file.
 * On error the old file, its head and the log are as they were.
 */
static Err
replace_image(Store *store, StoreTxn *txn, ImageHead *head, ErrMsg *msg)
{
    StoreFile *file = store->file;
    RtFile *temp = NULL;
    /* A left-over may still be locked by the I/O of the process that died over it. */
    Err err = rt_file_unlink(file->dir, file->temp_name, NULL);
    if (err != OK && err != ERR_NOTFOUND) {
        return err_set(msg, err, "%s cannot be removed", file->temp_name);
    }
    err = rt_file_open(file->dir, file->temp_name,
                       RT_FILE_READ | RT_FILE_WRITE | RT_FILE_CREATE | RT_FILE_EXCLUSIVE, &temp,
                       msg);
    if (err != OK) return err;
    err = rt_file_own(temp, true, NULL, msg);
    if (err == OK) err = write_image(store, txn, temp, head, msg);
    if (err == OK) err = rt_file_rename(file->dir, file->temp_name, file->name, msg);
    if (err != OK) {
        rt_file_close(temp);
        Err ignored = rt_file_unlink(file->dir, file->temp_name, NULL);
        (void)ignored;
        return err;
    }
    /* From here on the new file has the name, whether or not that is durable yet; both files are
       whole and the log serves either. */
    rt_file_close(file->file);
    file->file = temp;
    file->head = *head;
    file->has_image = true;
    u64 size_bytes;
    if (rt_file_size(temp, &size_bytes, NULL) == OK) {
        rt_store_relaxed(&file->file_bytes, size_bytes);
    }
    file->name_unsynced = true;
    return name_sync(file, msg);
}

/* Change the head in place.  The other slot keeps the former one. */
static Err
replace_head(StoreFile *file, ImageHead *head, ErrMsg *msg)
{
    Err err = image_head_write(file->file, head, msg);
    if (err == OK) err = rt_file_sync(file->file, msg);
    if (err == OK) err = name_sync(file, msg);
    if (err == OK) file->head = *head;
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
        ImageHead head = file->head;
        head.sequence++;
        head.flags &= ~IMAGE_CLEAN;
        head.log_generation = wal_generation(store->wal);
        /* Nothing has been committed since the image: its cut moves to where the log starts. */
        rt_latch_acquire(&store->commit_latch);
        head.cut_lsn = head.oldest_lsn = wal_next(store->wal);
        rt_latch_release(&store->commit_latch);
        if (file->has_image) {
            err = replace_head(file, &head, msg);
        } else {
            StoreTxn *txn;
            u64 cut_lsn, oldest_lsn;
            err = txn__begin_at_cut(store, &txn, &cut_lsn, &oldest_lsn);
            if (err == OK) {
                err = replace_image(store, txn, &head, msg);
                store_txn_rollback(txn);
            }
        }
        if (err == OK) file->has_log = true;
    }
    if (err == OK || PLANT(110)) rt_store_release(&file->log_ready, 1);
    rt_mutex_unlock(&file->mutex);
    return err;
}

/* ---- checkpoints ---- */

static Err
checkpoint_run(Store *store, bool closing, ErrMsg *msg)
{
    StoreFile *file = store->file;
    StoreTxn *txn;
    ImageHead head = file->head;
    Err err = txn__begin_at_cut(store, &txn, &head.cut_lsn, &head.oldest_lsn);
    if (err != OK) return err_set(msg, err, "out of memory");
    head.cut_ts = txn->snapshot;
    head.sequence++;
    if (file__log_is_ready(store)) {
        head.log_generation = wal_generation(store->wal);
        if (!PLANT(106)) err = wal_flush(store->wal, head.cut_lsn, true);
        if (err != OK) err_set(msg, err, "%s", wal_failure_text(store->wal, err));
    }
    if (closing) {
        head.flags |= IMAGE_CLEAN;
        head.oldest_lsn = head.cut_lsn;
    }
    bool same = closing && head.cut_lsn == file->head.cut_lsn && file->has_image;
    if (err == OK) {
        err = same ? replace_head(file, &head, msg) : replace_image(store, txn, &head, msg);
    }
    store_txn_rollback(txn);
    if (err != OK) return err;
    rt_store_relaxed(&file->cut_lsn, head.cut_lsn);
    if (file__log_is_ready(store)) wal_recycle(store->wal, head.oldest_lsn);
    return OK;
}

Err
file__checkpoint(Store *store, bool closing, ErrMsg *msg)
{
    StoreFile *file = store->file;
    if (store->read_only) return OK;
    if (store__failed(store)) {
        return err_set(msg, ERR_IO, "the log has failed; the store must be opened again");
    }
    if (!closing && !file__log_is_ready(store)) {
        if (!file->has_log) return OK; /* Nothing has changed since the image. */
        Err err = file__begin_log(store, msg);
        if (err != OK) return err;
    }
    u64 started_ns = rt_now_ns();
    rt_mutex_lock(&file->mutex);
    Err err = checkpoint_run(store, closing, msg);
    rt_mutex_unlock(&file->mutex);
    if (err != OK) return err;
    rt_fetch_add(&store->counters.checkpoints, 1);
    rt_store_relaxed(&store->counters.checkpoint_ns_last, rt_now_ns() - started_ns);
    return OK;
}

bool
file__is_due(const Store *store)
{
    const StoreFile *file = store->file;
    if (file == NULL || store->wal == NULL || store__failed(store)) return false;
    u64 allowed = MAX_OF(CHECKPOINT_BYTES, rt_load_relaxed(&file->file_bytes));
    return wal_bytes_since(store->wal, rt_load_relaxed(&file->cut_lsn)) > allowed;
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
    u64 allowed = MAX_OF(CHECKPOINT_BYTES, rt_load_relaxed(&file->file_bytes));
    if (wal_bytes_since(store->wal, rt_load_relaxed(&file->cut_lsn)) < allowed * CHECKPOINT_HARD) {
        return;
    }
    /* Commits come faster than checkpoints: wait for the one that runs. */
    rt_mutex_lock(&file->mutex);
    rt_mutex_unlock(&file->mutex);
}

void
file__close(Store *store)
{
    StoreFile *file = store->file;
    if (file == NULL) return;
    rt_mutex_lock(&file->helper_mutex);
    file->helper_stops = true;
    rt_cond_signal(&file->helper_cond);
    rt_mutex_unlock(&file->helper_mutex);
    rt_thread_join(file->helper);
    bool changed = file->has_log && !store->read_only;
    if (changed && !store__failed(store)) {
        ErrMsg msg = {0};
        Err err = file__checkpoint(store, true, &msg);
        if (err == OK) err = wal_remove_all(file->dir, file->name, &msg);
        if (err != OK) {
            /* Nothing is lost: the next open recovers. */
            log_line(LOG_WARN, "closing %s: %s", store->path, err_message(&msg));
        }
        err_clear(&msg);
    }
    file_free(file);
    store->file = NULL;
}
