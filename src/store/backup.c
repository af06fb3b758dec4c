/*
 * backup.c -- online backup: a pinned checkpoint, copied to a file of its own.
 *
 * The copy is the checkpoint with a superblock that says CLEAN: no log belongs to it.  What was
 * open at its cut is undone by whoever opens the copy, from the description.  Order: pages; sync;
 * superblock; sync; name; directory synced.  A file without a superblock is refused, and one under
 * the partial name is not looked for by anybody but the next backup to the same name.
 */
#include "store/file.h"
#include "store/wal/wal_scan.h"

#define PARTIAL "-partial"

struct StoreBackup {
    CkptCopy *copy;
    Super super;
    RtDir *dir;
    char *name, *partial; /* In dir. */
    RtFile *file;
    bool is_ours;    /* The partial file is. */
    bool is_renamed; /* It has its name, which may not be durable. */
    bool is_done;
    Err failed; /* A sync: what is on disk is not known, trying again would prove nothing. */
};

/* Directory and names for a path. */
static Err
names_make(StoreBackup *backup, const char *path, ErrMsg *msg)
{
    char *real = NULL, *dir = NULL;
    Err err = rt_path_real(path, &real, msg);
    if (err == ERR_NOTFOUND) {
        err = err_set(msg, ERR_CANTOPEN, "unable to open database file: %s", path);
    }
    if (err != OK) return err;
    const char *slash = strrchr(real, '/');
    ASSERT(slash != NULL);
    dir = mem_strndup(real, slash == real ? 1 : (size_t)(slash - real));
    backup->name = mem_strdup(slash + 1);
    size_t bytes = strlen(slash + 1);
    backup->partial = (char *)mem_alloc(bytes + sizeof(PARTIAL));
    if (dir == NULL || backup->name == NULL || backup->partial == NULL) {
        err = err_set(msg, ERR_NOMEM, "out of memory");
    } else {
        memcpy(backup->partial, slash + 1, bytes);
        memcpy(backup->partial + bytes, PARTIAL, sizeof(PARTIAL));
        err = rt_dir_open(dir, &backup->dir, msg);
    }
    mem_free(dir);
    mem_free(real);
    return err;
}

/* Nothing may lie where the copy is to be. */
static Err
target_is_free(const StoreBackup *backup, ErrMsg *msg)
{
    RtStat stat;
    Err err = rt_file_stat(backup->dir, backup->name, &stat, msg);
    if (err == OK) return err_set(msg, ERR_EXISTS, "output file already exists: %s", backup->name);
    if (err != ERR_NOTFOUND) return err;
    err_clear(msg);
    bool strays;
    u32 segment_no;
    err = wal_scan_strays(backup->dir, backup->name, 0, 0, &strays, &segment_no, msg);
    if (err == OK && strays) {
        err = err_set(msg, ERR_EXISTS, "the log of a database lies beside the output file: %s",
                      backup->name);
    }
    return err;
}

/* The file that the copy grows in; what a backup that crashed has left is dropped. */
static Err
partial_open(StoreBackup *backup, ErrMsg *msg)
{
    Err err = rt_file_open(backup->dir, backup->partial,
                           RT_FILE_READ | RT_FILE_WRITE | RT_FILE_CREATE, &backup->file, msg);
    if (err != OK) return err;
    err = rt_file_own(backup->file, true, NULL, NULL);
    if (err == ERR_OWNED) {
        return err_set(msg, err, "another backup to %s is running", backup->name);
    }
    if (err != OK) return err_set(msg, err, "%s cannot be locked", backup->partial);
    backup->is_ours = true;
    return rt_file_truncate(backup->file, 0, msg);
}

static Err
source_pin(Store *store, StoreBackup *backup, ErrMsg *msg)
{
    StoreFile *file = store->file;
    Err err = file__checkpoint(store, false, msg);
    if (err == OK) err = ckpt_copy_open(file->ckpt, &backup->copy, msg);
    if (err != OK) return err;
    backup->super = ckpt_copy_super(backup->copy);
    /* What a store without a commit has in memory only. */
    backup->super.cut_ts = MAX_OF(backup->super.cut_ts, (u64)1);
    backup->super.tree_next = MAX_OF(backup->super.tree_next, TREE_ROOT + 1);
    return OK;
}

Err
store_backup_open(Store *store, const char *path, StoreBackup **backup_out, ErrMsg *msg)
{
    *backup_out = NULL;
    if (store->file == NULL) {
        return err_set(msg, ERR_UNSUPPORTED, "a store in memory has no pages on disk to copy");
    }
    if (store->read_only && store->file->has_log) {
        return err_set(msg, ERR_UNSUPPORTED,
                       "%s was opened to read only and needs its log: it cannot be copied by pages",
                       store->path);
    }
    StoreBackup *backup = MEM_NEW(StoreBackup);
    if (backup == NULL) return err_set(msg, ERR_NOMEM, "out of memory");
    Err err = names_make(backup, path, msg);
    if (err == OK) err = target_is_free(backup, msg);
    if (err == OK) err = partial_open(backup, msg);
    if (err == OK) err = source_pin(store, backup, msg);
    if (err != OK) {
        store_backup_close(backup);
        return err;
    }
    *backup_out = backup;
    return OK;
}

static Err
synced(StoreBackup *backup, Err err)
{
    if (err != OK) backup->failed = err;
    return err;
}

/* All pages are there. */
static Err
finish(StoreBackup *backup, ErrMsg *msg)
{
    Super super = backup->super;
    bool syncs = !PLANT(147); /* The name goes ahead of the bytes. */
    Err err = syncs ? synced(backup, rt_file_sync(backup->file, msg)) : OK;
    if (err == OK) err = super_write(backup->file, &super, msg);
    if (err == OK && syncs) err = synced(backup, rt_file_sync(backup->file, msg));
    if (err == OK) err = target_is_free(backup, msg);
    if (err == OK) err = rt_file_rename(backup->dir, backup->partial, backup->name, msg);
    if (err != OK) return err;
    backup->is_ours = false;
    backup->is_renamed = true;
    err = synced(backup, rt_dir_sync(backup->dir, msg));
    backup->is_done = err == OK;
    return err;
}

Err
store_backup_step(StoreBackup *backup, u32 pages, bool *more_out, ErrMsg *msg)
{
    bool more = true;
    *more_out = !backup->is_done;
    if (backup->is_done) return OK;
    if (backup->failed != OK) {
        return err_set(msg, backup->failed, "the backup to %s has failed: a sync did",
                       backup->name);
    }
    Err err = ckpt_copy_step(backup->copy, backup->file, pages, &more, msg);
    if (err == OK && !more) err = finish(backup, msg);
    *more_out = !backup->is_done;
    return err;
}

void
store_backup_progress(const StoreBackup *backup, u64 *done_out, u64 *most_out)
{
    ckpt_copy_progress(backup->copy, done_out, most_out);
}

void
store_backup_close(StoreBackup *backup)
{
    if (backup == NULL) return;
    ckpt_copy_close(backup->copy);
    const char *unwanted = backup->is_ours ? backup->partial : backup->name;
    if (backup->is_ours || (backup->is_renamed && !backup->is_done)) {
        Err ignored = rt_file_unlink(backup->dir, unwanted, NULL);
        (void)ignored; /* Then the next backup to this name drops or names it. */
    }
    rt_file_close(backup->file);
    rt_dir_close(backup->dir);
    mem_free(backup->name);
    mem_free(backup->partial);
    mem_free(backup);
}
