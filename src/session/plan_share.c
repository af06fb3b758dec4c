/*
 * plan_share.c -- plans that the connections of one database share, by text and schema version.
 *
 * A plan is immutable and counted, and rests on a catalog that the connections share too.  So
 * what one connection has planned another may take, if it would have made the same: the same
 * text, the same committed catalog, the same settings and functions, about the same sizes of
 * tables. Sessions that ask for it (SessionOptions.share_plans) register no functions, collations
 * or modules of their own.  A shared plan is charged to the database's memory account; only small
 * ones are kept, so a database holds at most PLANS_MAX * PLAN_BYTES_MAX for them, and all of them
 * go when a cap is met.
 *
 * Entries of an older catalog go when a newer one is published.
 */
#include "session/session__impl.h"

#define TEXT_BYTES_MAX 8192u
#define PLAN_BYTES_MAX ((size_t)64 * 1024)
#define SETS           (PLANS_MAX / PLANS_WAYS)

/* Everything else that a plan is made from; compared byte by byte. */
struct PlanKey {
    const FuncTable *functions;
    const Collation *(*find_collation)(void *arg, Slice name);
    u32 limit[5];
    u32 flags;
};

static void
key_make(const PlanContext *context, PlanKey *key_out)
{
    const bool flag[] = {context->foreign_keys,
                         context->recursive_triggers,
                         context->ignore_check_constraints,
                         context->reverse_unordered,
                         context->count_changes,
                         context->full_column_names,
                         context->long_column_names_off,
                         context->no_loop_index,
                         context->no_hash_join,
                         context->no_decorrelation,
                         context->plain,
                         context->case_sensitive_like,
                         context->triggers_off,
                         context->views_off,
                         context->strings_double_off};
    memset(key_out, 0, sizeof(*key_out));
    key_out->functions = context->functions;
    key_out->find_collation = context->find_collation;
    key_out->limit[0] = context->columns_max;
    key_out->limit[1] = context->expr_depth_max;
    key_out->limit[2] = context->compound_max;
    key_out->limit[3] = context->function_args_max;
    key_out->limit[4] = context->param_max;
    for (u32 i = 0; i < COUNT_OF(flag); i++)
        key_out->flags |= (u32)flag[i] << i;
}

/* May this statement's plan be another's? */
static bool
may_share(const Stmt *stmt, const PlanContext *context)
{
    const Session *session = stmt->session;
    return session->options.share_plans && context->authorize == NULL &&
           stmt->explain == AST_EXPLAIN_NONE && stmt->sql_bytes <= TEXT_BYTES_MAX &&
           session->db_count == 2 && session->db[1].database == NULL &&
           session->db[0].catalog != NULL && !session->db[0].own_ddl;
}

static PlanEntry *
set_of(Database *database, u64 hash)
{
    return &database->plans[(hash % SETS) * PLANS_WAYS];
}

/* With the lock held.  The plan's memory stays with statements that still use it. */
static void
entry_drop(Database *database, PlanEntry *entry)
{
    if (entry->plan != NULL) mem_account_release(database->account, entry->plan->arena.total_bytes);
    plan_release(entry->plan);
    catalog_release(entry->catalog);
    mem_free(entry->key);
    *entry = (PlanEntry){0};
}

static bool
is_for(const PlanEntry *entry, const Stmt *stmt, const PlanKey *key, u64 hash)
{
    return entry->plan != NULL && entry->hash == hash && entry->sql_bytes == stmt->sql_bytes &&
           memcmp(entry->plan->sql, stmt->sql, stmt->sql_bytes) == 0 &&
           entry->catalog == stmt->session->db[0].catalog &&
           memcmp(entry->key, key, sizeof(*key)) == 0;
}

Plan *
plan_share__take(const Stmt *stmt, const PlanContext *context)
{
    PlanKey key;
    Plan *plan = NULL;
    if (!may_share(stmt, context)) return NULL;
    Database *database = stmt->session->db[0].database;
    key_make(context, &key);
    u64 hash = hash_bytes(stmt->sql, stmt->sql_bytes, 0);
    rt_mutex_lock(&database->plans_lock);
    PlanEntry *set = set_of(database, hash);
    for (u32 i = 0; i < PLANS_WAYS && plan == NULL; i++) {
        if (!is_for(&set[i], stmt, &key, hash)) continue;
        if (!stmt_cache__rows_near(set[i].plan, set[i].rows)) {
            entry_drop(database, &set[i]); /* Another access path may be better now. */
            break;
        }
        plan = set[i].plan;
        plan->references++;
        set[i].used = ++database->plans_used;
    }
    rt_mutex_unlock(&database->plans_lock);
    rt_fetch_add(plan != NULL ? &database->plan_hits : &database->plan_misses, 1);
    return plan;
}

static bool
is_small(const Plan *plan)
{
    if (plan->arena.total_bytes > PLAN_BYTES_MAX) return false;
    for (u32 i = 0; i < plan->table_count; i++)
        if (plan->table[i].table->host != NULL) return false;
    return true;
}

/* With the lock held: an entry for this text, the oldest of its set if none is free. */
static PlanEntry *
place_of(Database *database, const Stmt *stmt, const PlanKey *key, u64 hash)
{
    PlanEntry *set = set_of(database, hash), *place = set;
    for (u32 i = 0; i < PLANS_WAYS; i++) {
        if (is_for(&set[i], stmt, key, hash)) return NULL; /* Another was faster. */
        if (set[i].used < place->used) place = &set[i];
    }
    entry_drop(database, place);
    return place;
}

void
plan_share__give(const Stmt *stmt, const PlanContext *context, Plan *plan)
{
    if (!may_share(stmt, context) || !is_small(plan)) return;
    Database *database = stmt->session->db[0].database;
    u64 bytes = plan->arena.total_bytes;
    if (mem_account_charge_spare(database->account, bytes) != OK) return;
    PlanKey *key = MEM_NEW(PlanKey);
    if (key == NULL) {
        mem_account_release(database->account, bytes);
        return;
    }
    key_make(context, key);
    u64 hash = hash_bytes(stmt->sql, stmt->sql_bytes, 0);
    rt_mutex_lock(&database->plans_lock);
    PlanEntry *place = place_of(database, stmt, key, hash);
    if (place != NULL) {
        arena_disown(&plan->arena);
        plan->references++;
        *place = (PlanEntry){.plan = plan,
                             .key = key,
                             .catalog = catalog_retain(stmt->session->db[0].catalog),
                             .hash = hash,
                             .sql_bytes = stmt->sql_bytes,
                             .rows = stmt_cache__rows(plan),
                             .used = ++database->plans_used};
        key = NULL;
    }
    rt_mutex_unlock(&database->plans_lock);
    if (key != NULL) mem_account_release(database->account, bytes);
    mem_free(key);
}

u64
plan_share__give_back(void *arg, u64 bytes)
{
    Database *database = (Database *)arg;
    u64 given = 0;
    if (!rt_mutex_try_lock(&database->plans_lock)) return 0;
    for (u32 i = 0; i < PLANS_MAX && given < bytes; i++) {
        PlanEntry *entry = &database->plans[i];
        if (entry->plan == NULL) continue;
        /* One that a statement uses would stay where it is. */
        if (entry->plan->references == 1) {
            given += entry->plan->arena.total_bytes;
            entry_drop(database, entry);
        }
    }
    rt_mutex_unlock(&database->plans_lock);
    return given;
}

void
plan_share__clear(Database *database, const Catalog *but)
{
    rt_mutex_lock(&database->plans_lock);
    for (u32 i = 0; i < PLANS_MAX; i++)
        if (database->plans[i].plan != NULL && database->plans[i].catalog != but)
            entry_drop(database, &database->plans[i]);
    rt_mutex_unlock(&database->plans_lock);
}

void
session_plan_counts(const Session *session, u64 *hits_out, u64 *misses_out)
{
    Database *database = session->db[0].database;
    *hits_out = rt_load_relaxed(&database->plan_hits);
    *misses_out = rt_load_relaxed(&database->plan_misses);
}
