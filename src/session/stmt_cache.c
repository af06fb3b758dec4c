/*
 * stmt_cache.c -- finalized statements wait for the next prepare of the same text.
 *
 * Programs prepare the same few texts again and again.  A planned statement that is finalized
 * without an error keeps its plan and its run state, under its text; the next prepare of that text
 * takes it over as it is.  What the plan rests on must still hold: the environment (functions,
 * collations, limits, settings), the catalogs, and roughly the sizes of the tables.  With an
 * authorizer nothing is kept, because it wants to be asked.
 *
 * A catalog that another connection has changed is not noticed here but at the first step, which
 * prepares again, as for every statement.
 */
#include "session/session__impl.h"

#define TEXT_BYTES_MAX  2048u /* Longer texts are not kept, nor looked for. */
#define PARAM_BYTES_MAX 1024u /* Larger buffers of parameters are let go. */
#define TABLES_MAX      8u
#define SESSION_BYTES_MAX                                                  \
    ((u64)256 * 1024) /* A session that holds more lets old ones go first. \
                       */
#define ROWS_SMALL 1000.0
#define ROWS_DRIFT 4.0

static StmtCacheEntry *
set_of(Session *session, u64 hash)
{
    u32 sets = STMT_CACHE_ENTRIES / STMT_CACHE_WAYS;
    return &session->stmt_cache[((hash >> 1) % sets) * STMT_CACHE_WAYS];
}

f64
stmt_cache__rows(const Plan *plan)
{
    f64 rows = ROWS_SMALL;
    for (u32 i = 0; i < plan->table_count; i++) {
        const TableDef *table = plan->table[i].table;
        if (table->has_stat || table->store == NULL || table->tree == TREE_NONE) continue;
        rows += (f64)store_estimate_rows(table->store, table->tree);
    }
    return rows;
}

bool
stmt_cache__rows_near(const Plan *plan, f64 then)
{
    f64 rows = stmt_cache__rows(plan);
    return rows < then * ROWS_DRIFT && rows * ROWS_DRIFT > then;
}

static bool
still_holds(const Session *session, const StmtCacheEntry *entry)
{
    const Stmt *stmt = entry->stmt;
    if (stmt->environment != session->environment) return false;
    for (u32 i = 0; i < session->db_count; i++) {
        if (stmt->catalog[i] != session->db[i].catalog) return false;
    }
    return stmt_cache__rows_near(stmt->plan, entry->rows);
}

static void
drop(StmtCacheEntry *entry)
{
    stmt__free(entry->stmt);
    *entry = (StmtCacheEntry){0};
}

Stmt *
stmt_cache__take(Session *session, Slice sql, u64 *hash_out)
{
    *hash_out = 0;
    if (session->host.authorize != NULL || sql.bytes > TEXT_BYTES_MAX) return NULL;
    u64 hash = hash_bytes(sql.p, sql.bytes, 0) | 1;
    *hash_out = hash;
    StmtCacheEntry *set = set_of(session, hash);
    for (u32 i = 0; i < STMT_CACHE_WAYS; i++) {
        StmtCacheEntry *entry = &set[i];
        if (entry->stmt == NULL || entry->hash != hash) continue;
        Stmt *stmt = entry->stmt;
        if (stmt->sql_bytes != sql.bytes || memcmp(stmt->sql, sql.p, sql.bytes) != 0) continue;
        if (!still_holds(session, entry)) {
            /* Others are likely to be out of date too. */
            stmt_cache__clear(session);
            return NULL;
        }
        *entry = (StmtCacheEntry){0};
        return stmt;
    }
    return NULL;
}

static bool
may_keep(const Stmt *stmt)
{
    const Session *session = stmt->session;
    if (session->host.authorize != NULL || session->closing || stmt->ast != NULL) return false;
    if (stmt->no_virtual) return false;
    if (stmt->plan == NULL || stmt->explain != AST_EXPLAIN_NONE) return false;
    if (!stmt->is_whole_text || stmt->sql_bytes > TEXT_BYTES_MAX) return false;
    if (stmt->plan->table_count > TABLES_MAX || stmt->environment != session->environment)
        return false;
    for (u32 i = 0; i < stmt->plan->table_count; i++) {
        if (stmt->plan->table[i].table->host != NULL) return false;
    }
    return true;
}

/* As it was when it had just been prepared. */
static void
make_new(Stmt *stmt)
{
    stmt->state = STMT_READY;
    stmt->last_error = OK;
    stmt->host_savepoint = stmt->shown = false;
    stmt->row = (StmtRow){0};
    memset(stmt->count, 0, sizeof(stmt->count));
    if (stmt->exec != NULL) exec_status_clear(stmt->exec);
    stmt->rows = (RowList){0};
    stmt->rows_shown = 0;
    stmt->text = NULL;
    stmt->next = stmt->previous = NULL;
    arena_reset(&stmt->run);
    arena_reset(&stmt->row_text);
    for (u32 i = 0; i < stmt->param_count; i++) {
        stmt->param[i] = cell_null();
        if (stmt->param_bytes[i].capacity > PARAM_BYTES_MAX) buf_free(&stmt->param_bytes[i]);
    }
}

/*
 * True if the session is small enough to keep one more.  If not, the oldest goes, one for each that
 * comes, so that statements of long ago do not keep new ones out, and a single large one does not
 * drive out all.
 */
static bool
make_room(Session *session)
{
    StmtCacheEntry *oldest = NULL;
    if (session->account.used_bytes <= SESSION_BYTES_MAX) return true;
    for (u32 i = 0; i < STMT_CACHE_ENTRIES; i++) {
        StmtCacheEntry *entry = &session->stmt_cache[i];
        if (entry->stmt == NULL) continue;
        if (oldest == NULL || entry->used < oldest->used) oldest = entry;
    }
    if (oldest == NULL) return false;
    drop(oldest);
    return session->account.used_bytes <= SESSION_BYTES_MAX;
}

bool
stmt_cache__keep(Stmt *stmt)
{
    Session *session = stmt->session;
    if (!may_keep(stmt) || !make_room(session)) return false;
    if (stmt->text_hash == 0) stmt->text_hash = hash_bytes(stmt->sql, stmt->sql_bytes, 0) | 1;
    u64 hash = stmt->text_hash;
    StmtCacheEntry *set = set_of(session, hash), *place = set;
    for (u32 i = 0; i < STMT_CACHE_WAYS; i++) {
        if (set[i].stmt == NULL) {
            place = &set[i];
            break;
        }
        if (set[i].used < place->used) place = &set[i];
    }
    if (place->stmt != NULL) drop(place);
    make_new(stmt);
    *place = (StmtCacheEntry){stmt, hash, ++session->stmt_cache_used, stmt_cache__rows(stmt->plan)};
    return true;
}

void
stmt_cache__clear(Session *session)
{
    for (u32 i = 0; i < STMT_CACHE_ENTRIES; i++) {
        if (session->stmt_cache[i].stmt != NULL) drop(&session->stmt_cache[i]);
    }
}
