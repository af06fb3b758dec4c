/*
 * store.h -- the face of the store: durable ordered trees of byte strings with snapshots.
 *
 * A Store is a set of trees; a tree maps byte-string keys (memcmp order) to byte-string values.
 * All reads and writes happen inside a StoreTxn, which spans any number of trees.  The store knows
 * nothing of SQL and never calls code of its caller.
 *
 * Rules for callers:
 *   1. A commit that returned OK is durable as its StoreSync says; nothing else is.
 *   2. Within a transaction reads see its own newest writes; of others, what its snapshot sees.
 *   3. Nothing that was read may be shown outside before store_txn_wait_shown() returned OK: a
 *      version may be visible before its sync has ended.
 *   4. After an error from a write call the caller undoes the statement with store_txn_undo_to()
 *      (or the whole transaction); reads go on working.
 *   5. Slices handed out stay valid until the next call on the same cursor or transaction.
 *
 * Tasks: a StoreTxn and its cursors are used by one task at a time.  Functions marked [parks] may
 * wait for the disk, a row, or the token; hold no latch across them.  Different transactions of
 * one store may be used by any tasks at once.
 */
#pragma once

#include "base/base.h"

struct RtProcess;

typedef struct Store Store;
typedef struct StoreTxn StoreTxn;
typedef struct StoreCursor StoreCursor;

typedef u32 TreeId;
#define TREE_NONE ((TreeId)0)
/* In every store, of kind STORE_TREE_BYTES.  Keys that begin with ff 50 are the store's own. */
#define TREE_ROOT ((TreeId)1)

#define STORE_KEY_BYTES_MAX   ((size_t)1024)
#define STORE_VALUE_BYTES_MAX ((size_t)1000 * 1000 * 1000 + 65536)

typedef enum StoreTreeKind {
    STORE_TREE_BYTES,
    STORE_TREE_INT /* Every key is exactly 8 bytes, big-endian, sign flipped. */
} StoreTreeKind;

typedef enum StoreSync {
    STORE_SYNC_OFF,    /* Handed to the kernel before commit returns. */
    STORE_SYNC_NORMAL, /* The same; synced at checkpoints. */
    STORE_SYNC_FULL    /* On disk before commit returns. */
} StoreSync;

typedef enum StoreLevel {
    STORE_READ_COMMITTED, /* store_txn_refresh() before each statement. */
    STORE_SNAPSHOT,
    STORE_SERIALIZABLE
} StoreLevel;

typedef struct StoreOptions {
    bool in_memory; /* No file at all; `path` only names it (NULL: private). */
    bool read_only;
    bool create; /* Make the file when it is missing. */
    /* At creation: 0 (16384) or a power of two from 8192 to 65536; others become the next one. */
    u32 page_bytes;
    u64 pool_bytes; /* 0: default. */
    /* The file has to lie directly in this directory, links followed; NULL: anywhere. */
    const char *beneath;
} StoreOptions;

/*
 * Open a store, or join the one that this process has open already under that path.  [parks]
 *
 * Ownership: on OK the caller has one reference, given back by store_close().
 * Errors, each with a message: ERR_CANTOPEN, ERR_NOTADB (a foreign file; for a SQLite database the
 * message says how to import it; the file is untouched), ERR_VERSION, ERR_CORRUPT, ERR_OWNED
 * (names the owner), ERR_PERM, ERR_READONLY, ERR_IO*, ERR_FULL, ERR_NOMEM, ERR_FOREIGN.
 */
MUST_CHECK Err store_open(struct RtProcess *process, const char *path, const StoreOptions *options,
                          Store **store_out, ErrMsg *msg);
/* What this database uses of memory: pages, before-images, and what callers hang below or charge.
   Its cap is theirs to set. */
MemAccount *store_account(Store *store);
/* Give back a reference; the last one makes the one file complete (checkpoint, log emptied) and
   frees the store.  No transaction of the caller may be open.  NULL is allowed.  [parks] */
void store_close(Store *store);
/* One unit of background work (checkpoint step, settling, purge).  More to do?  [parks] */
MUST_CHECK Err store_step(Store *store, u64 budget, bool *more_out);
/* Write a checkpoint now.  [parks] */
MUST_CHECK Err store_checkpoint(Store *store, ErrMsg *msg);
const char *store_path(const Store *store); /* "" for an unnamed in-memory store. */
bool store_is_read_only(const Store *store);

/* ---- online backup ---- */

/*
 * A copy of a store of files, made while others go on reading and writing: a checkpoint is written
 * and pinned, and its pages are copied step by step.  The copy opens as a store of its own, which
 * holds what was committed when the backup began.  It grows under the name PATH-partial and gets
 * its own name when it is whole and durable, so a crash leaves no file that could be taken for a
 * store.
 *
 * Space that the store gives up meanwhile is not used again before the backup is closed.  Tasks:
 * one at a time; close it before the store.
 */
typedef struct StoreBackup StoreBackup;
/* ERR_EXISTS (also when the log of a database of that name lies there), ERR_UNSUPPORTED (a store in
   memory, or one opened to read only whose log could not be applied to its file), ERR_OWNED
   (another backup to that name runs), and errors of a checkpoint.  [parks] */
MUST_CHECK Err store_backup_open(Store *store, const char *path, StoreBackup **backup_out,
                                 ErrMsg *msg);
/* Copy up to `pages` pages.  *more_out false: the copy is complete and durable.  After an error the
   same step may be tried again, except after a failed sync, which every later step reports. [parks]
   ERR_FULL, ERR_IO*, ERR_CORRUPT, ERR_EXISTS. */
MUST_CHECK Err store_backup_step(StoreBackup *backup, u32 pages, bool *more_out, ErrMsg *msg);
/* Pages copied, and how many there are at most. */
void store_backup_progress(const StoreBackup *backup, u64 *done_out, u64 *most_out);
/* What is not complete goes.  NULL is allowed.  [parks] */
void store_backup_close(StoreBackup *backup);

/* ---- transactions ---- */

typedef struct StoreTxnOptions {
    StoreLevel level;
    StoreSync sync;
    u64 wait_ns; /* Bound on every single wait for a row, schema lock or token; 0: do not wait. */
} StoreTxnOptions;

/* Begin; the snapshot is taken here.  Cheap: no lock, no I/O. */
MUST_CHECK Err store_txn_begin(Store *store, const StoreTxnOptions *options, StoreTxn **txn_out);
/* Durable and visible when OK.  After any error the transaction is rolled back, except ERR_BUSY
   (nothing happened; may be tried again).  Frees the transaction unless ERR_BUSY.  After ERR_IO*
   the outcome is unknown until the next open.  [parks] */
MUST_CHECK Err store_txn_commit(StoreTxn *txn, ErrMsg *msg);
/* Cannot fail.  Frees the transaction; its cursors must be closed.  NULL is allowed.  [parks] */
void store_txn_rollback(StoreTxn *txn);
/* Take a fresh snapshot: READ COMMITTED before a statement, or a restart after undo to the start.
   Refused (ERR_MISUSE) if a SNAPSHOT or SERIALIZABLE transaction has written. */
MUST_CHECK Err store_txn_refresh(StoreTxn *txn);
/* See what another transaction of the same store, which is open, sees.  ERR_MISUSE: `txn` has
   written, or is SERIALIZABLE. */
MUST_CHECK Err store_txn_join(StoreTxn *txn, const StoreTxn *other);
/* Its snapshot as a number: a later one is higher. */
u64 store_txn_moment(const StoreTxn *txn);
void store_txn_set_wait(StoreTxn *txn, u64 wait_ns);
void store_txn_set_sync(StoreTxn *txn, StoreSync sync);
/* Has it written anything (now, not counting what was undone)? */
bool store_txn_has_written(const StoreTxn *txn);
/* The error of the last failed call on this transaction or one of its cursors, with its text. */
const ErrMsg *store_txn_error(const StoreTxn *txn);
/* Park until everything this transaction has read or judged is durable.  [parks] */
MUST_CHECK Err store_txn_wait_shown(StoreTxn *txn);
/* Does another transaction wait for the end of this one?  Any task, while the transaction lives. */
bool store_txn_is_waited_for(StoreTxn *txn);
/* Safe in a signal handler and from any thread: waits of this transaction end with ERR_INTERRUPT
   until store_txn_clear_interrupt(). */
void store_txn_interrupt(StoreTxn *txn);
void store_txn_clear_interrupt(StoreTxn *txn);

/* Savepoints and statement rollback: a mark is a position in the undo list.  What was written
   before the newest mark can be had back, so a row that is written again behind it keeps another
   image; marks that nobody will undo to should go. */
typedef u64 StoreMark;
StoreMark store_txn_mark(StoreTxn *txn);
/* Where a mark would be: for who undoes to it only if nothing has been written since. */
StoreMark store_txn_place(const StoreTxn *txn);
/* Nobody undoes to a mark above `keep` any more (0: to any but the start). */
void store_txn_drop_marks(StoreTxn *txn, StoreMark keep);
/* Undo everything written since `mark`.  Cannot fail.  Row locks are kept.  Open cursors of the
   transaction stay usable: they seek again by key.  */
void store_txn_undo_to(StoreTxn *txn, StoreMark mark);

/* The write token of single-writer mode.  Taken before the first write, kept to the end of the
   transaction, handed on at commit before the sync.  ERR_BUSY when not free within wait_ns;
   ERR_BUSY_SNAPSHOT when somebody else committed after this transaction's base.  A transaction that
   has not read since its snapshot gets a fresh one instead.  The owner's writes go over rows of
   running transactions without the token: those then fail with ERR_BUSY_SNAPSHOT.  [parks] */
MUST_CHECK Err store_txn_take_token(StoreTxn *txn);

/* Schema locks by number (the caller's choice, e.g. a table's tree id), held to the end.  Waits as
   rows do, in the same wait graph.  [parks] */
MUST_CHECK Err store_txn_lock_schema(StoreTxn *txn, u64 lock_no, bool exclusive);
/* Wait for a turn among those that name the same lock (numbers as above): one is woken at a time,
   and who waits keeps no old version alive.  *waited_out: then the snapshot is a fresh one, and
   nothing that was read before counts.  For transactions that have not written.  [parks] */
MUST_CHECK Err store_txn_take_turn(StoreTxn *txn, u64 lock_no, bool *waited_out);
/* Shared lock on a key that must stay as it is (the parent of a foreign key).  [parks] */
MUST_CHECK Err store_txn_lock_key(StoreTxn *txn, TreeId tree, Slice key);

/* ---- trees ---- */

/* Transactional.  Ids are never used again. */
MUST_CHECK Err store_tree_create(StoreTxn *txn, StoreTreeKind kind, TreeId *tree_out);
/* Drop at commit; rows go when no snapshot can read them. */
MUST_CHECK Err store_tree_drop(StoreTxn *txn, TreeId tree);
/* A number greater than every number handed out before for `tree` and at least `at_least`;
   never waits for other writers; gaps happen.  For rowids in multi mode. */
MUST_CHECK Err store_tree_next_number(StoreTxn *txn, TreeId tree, i64 at_least, i64 *number_out);
/* The same, greater than every key that the tree (of integers) has too, whoever has put it and
   whether it is committed or not; 1 in an empty one.  ERR_FULL: there is none.  [parks] */
MUST_CHECK Err store_tree_next_key(StoreTxn *txn, TreeId tree, i64 *number_out);

/* ---- reads ---- */

/* Value of one key as the transaction sees it.  `value_out` is filled only if found.  [parks] */
MUST_CHECK Err store_get(StoreTxn *txn, TreeId tree, Slice key, bool *found_out, Slice *value_out);
/* The newest version, whatever the snapshot, waiting for its running writer: for constraint
   checks.  newer_out: true if what was judged was committed after the snapshot.  [parks] */
MUST_CHECK Err store_get_newest(StoreTxn *txn, TreeId tree, Slice key, bool *found_out,
                                bool *newer_out, Slice *value_out);
/*
 * Copy a part of a value: up to `count` bytes from `offset` on, fewer at its end; *bytes_out: how
 * long it is.  Memory for one part, whatever the length.  [parks]
 */
MUST_CHECK Err store_get_part(StoreTxn *txn, TreeId tree, Slice key, u64 offset, void *to,
                              u32 count, bool *found_out, u64 *bytes_out);
/* Number of keys the transaction sees; from leaf headers where leaves are settled.  [parks] */
MUST_CHECK Err store_count(StoreTxn *txn, TreeId tree, u64 *rows_out);
/* About how many keys the tree has, and how many lie in [low, high) (an empty high: no bound). For
   planning; no I/O, never waits. */
u64 store_estimate_rows(Store *store, TreeId tree);
f64 store_estimate_fraction(Store *store, TreeId tree, Slice low, Slice high);

/*
 * Cursors.  A cursor has a direction-free position between or on entries; it stays usable when the
 * transaction writes to the tree or undoes writes, and then goes on from its last key.
 */
typedef enum StoreSeek {
    STORE_SEEK_FIRST, /* `key` ignored. */
    STORE_SEEK_LAST,
    STORE_SEEK_GE, /* First entry with key >= `key`. */
    STORE_SEEK_GT,
    STORE_SEEK_LE, /* Last entry with key <= `key`. */
    STORE_SEEK_LT
} StoreSeek;

MUST_CHECK Err store_cursor_open(StoreTxn *txn, TreeId tree, StoreCursor **cursor_out);
/* Point an open cursor at another tree or transaction without allocating.  txn NULL detaches it:
   the transaction may end, and only this function and close may follow. */
void store_cursor_rebind(StoreCursor *cursor, StoreTxn *txn, TreeId tree);
void store_cursor_close(StoreCursor *cursor); /* NULL is allowed. */
/* Move; found_out false means there is no such entry.  [parks] */
MUST_CHECK Err store_cursor_seek(StoreCursor *cursor, StoreSeek how, Slice key, bool *found_out);
MUST_CHECK Err store_cursor_next(StoreCursor *cursor, bool *found_out);
MUST_CHECK Err store_cursor_prev(StoreCursor *cursor, bool *found_out);
/* The current entry; only after a move that found one. */
Slice store_cursor_key(const StoreCursor *cursor);
Slice store_cursor_value(const StoreCursor *cursor);

/* Many entries at once, copied out of the pages.  Arrays and bytes belong to the cursor and live
   until its next call. */
typedef struct StoreRun {
    u32 rows;
    const Slice *key;
    const Slice *value;
    bool end; /* Nothing follows (within the bound). */
} StoreRun;

/* Bound the following fetches: entries beyond `key` (in the direction of the fetch) are not
   returned.  An empty slice removes the bound.  The key is copied. */
MUST_CHECK Err store_cursor_set_bound(StoreCursor *cursor, Slice key, bool inclusive);
/* The entries at and after the position (before it, if backwards), at most rows_max and about
   bytes_max bytes; the position moves behind them.  Start with a seek; a fetch after a seek that
   found nothing returns end.  May return fewer rows than asked without being at the end.  [parks]
 */
MUST_CHECK Err store_cursor_fetch(StoreCursor *cursor, u32 rows_max, size_t bytes_max,
                                  bool backwards, StoreRun *run_out);
/* The number of entries from the first with key >= `key` on (empty: from the first of all), within
   the bound.  [parks] */
MUST_CHECK Err store_cursor_count(StoreCursor *cursor, Slice key, u64 *rows_out);
/* A seek and the first fetch from there, in the seek's direction, in one: what short ranges want.
   [parks] */
MUST_CHECK Err store_cursor_fetch_at(StoreCursor *cursor, StoreSeek how, Slice key, u32 rows_max,
                                     size_t bytes_max, StoreRun *run_out);

/*
 * Looking at entries where they lie, uncopied: for who reads whole tables.
 *
 * store_look_start() begins a look at the cursor's position.  store_look_next() opens the entries
 * of the next leaf: their bytes may change while they are read, so a reader checks every offset
 * against page_bytes, writes only to memory of its own, and neither parks nor calls the store
 * before store_look_end().  If that says true, what was read is what stood there at one instant,
 * and the transaction sees just that; the piece then belongs to the look, and store_look_again()
 * opens it once more, as long as its leaf has not changed since.  If it says false, the piece does
 * not belong to the look and nothing that was read counts.
 *
 * The position does not move before store_look_done(), which puts it behind the look; without that,
 * store_cursor_fetch() gives the same entries.
 *
 * Only trees of integer keys.  Nothing comes where a leaf cannot be read as it lies (versions,
 * tombstones, a SERIALIZABLE transaction, the end of the tree): fetch there.
 */
#define STORE_LOOK_PIECES_MAX 64u

/* As it lies in the page. */
typedef struct StoreEntry {
    u64 key; /* The eight bytes of the key, the first one highest. */
    u16 at;  /* Of the value, in the page. */
    u16 reserved;
    u16 value_bytes;
    u8 writer;
    u8 flags; /* 0: plain.  Others (long, padded values) have to be fetched. */
} StoreEntry;

typedef struct StorePiece {
    const u8 *page;
    u32 page_bytes;
    u32 rows;
    u32 first; /* Number of its first row in the look. */
    i32 step;  /* To the next entry: 1 or -1. */
    const StoreEntry *entry;
    const u8 *ahead; /* The page that will be read next, to be asked for early; never NULL. */
} StorePiece;

MUST_CHECK bool store_look_start(StoreCursor *cursor, bool backwards);
/* At most rows_max entries; false: nothing is open, the look ends here.  [parks] */
MUST_CHECK bool store_look_next(StoreCursor *cursor, u32 rows_max, StorePiece *piece_out);
/* `keeps` false: the reader could not read it, so a new piece does not belong to the look. */
MUST_CHECK bool store_look_end(StoreCursor *cursor, bool keeps);
/* Open a piece of the look again; false: it has changed, and is not open.  [parks] */
MUST_CHECK bool store_look_again(StoreCursor *cursor, u32 piece, StorePiece *piece_out);
/* *end_out: nothing follows (within the bound). */
MUST_CHECK Err store_look_done(StoreCursor *cursor, bool *end_out);

/* ---- writes ---- */

typedef enum StorePut {
    STORE_PUT_INSERT, /* The key must be absent. */
    STORE_PUT_UPDATE, /* The key must be present. */
    STORE_PUT_ANY
} StorePut;

typedef enum StoreVerdict {
    STORE_DONE,
    STORE_EXISTS,       /* INSERT: the newest version exists; nothing was written. */
    STORE_EXISTS_NEWER, /* The same, committed after this transaction's snapshot. */
    STORE_ABSENT        /* UPDATE, delete: no such key. */
} StoreVerdict;

/*
 * Write one entry; waits for a running writer of the key first.  [parks]
 *
 * Existence is judged on the newest version.  Writing over a version committed after the snapshot
 * gives ERR_BUSY_SNAPSHOT "could not serialize access due to concurrent update" (the caller may
 * undo the statement, refresh and run it again if nothing was shown), ERR_BUSY after wait_ns,
 * ERR_BUSY_DEADLOCK when the wait would close a cycle, ERR_READONLY, ERR_TOOBIG, ERR_FULL, ERR_IO*.
 */
MUST_CHECK Err store_put(StoreTxn *txn, TreeId tree, Slice key, Slice value, StorePut mode,
                         StoreVerdict *verdict_out);
MUST_CHECK Err store_delete(StoreTxn *txn, TreeId tree, Slice key, StoreVerdict *verdict_out);
/*
 * Write over a part of a value, which keeps its length; needs memory for one part.  Trees of kind
 * STORE_TREE_INT.  The verdict is STORE_DONE or STORE_ABSENT.  Errors as store_put(); ERR_MISUSE:
 * the part lies behind the end; ERR_UNSUPPORTED: another kind of tree.  [parks]
 */
MUST_CHECK Err store_put_part(StoreTxn *txn, TreeId tree, Slice key, u64 offset, Slice bytes,
                              StoreVerdict *verdict_out);
/* Remove every entry of the tree, as one change. */
MUST_CHECK Err store_tree_clear(StoreTxn *txn, TreeId tree, u64 *rows_out);

/* ---- watching ---- */

typedef struct StoreStats {
    u64 commits, rollbacks, row_waits, deadlocks, conflicts;
    u64 log_syncs, log_bytes, group_commits; /* group_commits / log_syncs: mean group size. */
    u64 checkpoints, checkpoint_ns_last;
    u64 page_hits, page_reads, page_writes, splits, restarts;
    u64 transactions_open, snapshots_open, versions_live, version_bytes;
    u64 file_bytes, memory_bytes;
} StoreStats;

void store_stats(Store *store, StoreStats *stats_out);
/* Verify everything; calls `report` for each finding.  OK even when there are findings.  [parks] */
MUST_CHECK Err store_check(Store *store, void (*report)(void *arg, const char *finding), void *arg,
                           u64 *findings_out);
/*
 * Say in words what a page of a data file is: head, fences, writers, entries.  `page`: its number
 * in the newest checkpoint, or with `is_slot` a place in the file; 0 and no slot: the superblock,
 * and how the file is laid out.  The file is only read, whoever owns it; damage is told, not
 * refused, as far as the page can be found.  Text is appended.  [parks] Errors: ERR_CANTOPEN,
 * ERR_NOTADB, ERR_VERSION, ERR_NOTFOUND (no such page), ERR_CORRUPT (the way to it is broken),
 * ERR_IO*, ERR_NOMEM.
 */
MUST_CHECK Err store_dump_page(const char *path, u32 page, bool is_slot, Buf *text, ErrMsg *msg);
/* A number that changes whenever any transaction commits a change; for caches. */
u64 store_change_number(const Store *store);
