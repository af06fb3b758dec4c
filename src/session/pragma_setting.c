/*
 * pragma_setting.c -- pragmas that set and read back: those with an effect, and those that are only
 * remembered because programs read what they have set.
 */
#include "session/pragma__impl.h"

/* A number, or on, yes, true and their kin; everything else is false, as in SQLite. */
bool
pragma__is_true(Slice value)
{
    static const char *const yes[] = {"on", "yes", "true", "full", "extra"};
    for (u32 i = 0; i < COUNT_OF(yes); i++) {
        if (slice_equal_nocase(value, SLICE(yes[i], strlen(yes[i])))) return true;
    }
    return value.bytes > 0 && value.p[0] >= '0' && value.p[0] <= '9' &&
           (pragma__value_number(value) & 0xff) != 0;
}

i64
pragma__value_number(Slice value)
{
    Cell cell = cell_text(value.p, value.bytes);
    return cell_to_int(&cell);
}

/* ---- remembered ---- */

static i64
kept_value(const PragmaCall *call)
{
    const i64 *kept = call->session->kept;
    return kept == NULL ? call->def->number : kept[pragma__number(call->def)];
}

/* False: out of memory. */
static bool
remember(PragmaCall *call, i64 value)
{
    Session *session = call->session;
    if (session->kept == NULL) session->kept = pragma__defaults();
    if (session->kept == NULL) return false;
    session->kept[pragma__number(call->def)] = value;
    return true;
}

static Err
keep(PragmaCall *call, i64 value)
{
    return remember(call, value) ? OK : session__fail(call->session, ERR_NOMEM, NULL);
}

/* Is it an integer, with nothing behind it? */
static bool
is_number(Slice value, i64 *number_out)
{
    Cell cell = cell_text(value.p, value.bytes);
    u32 at = value.bytes > 0 && (value.p[0] == '-' || value.p[0] == '+') ? 1 : 0;
    bool digits = value.bytes > at;
    for (u32 i = at; i < value.bytes; i++)
        digits = digits && value.p[i] >= '0' && value.p[i] <= '9';
    *number_out = cell_to_int(&cell);
    return digits;
}

Err
pragma__kept_flag(PragmaCall *call)
{
    if (!call->has_value) return pragma__one_number(call, kept_value(call));
    return keep(call, pragma__is_true(call->value));
}

/* A number that is not negative; anything else changes nothing. */
Err
pragma__kept_number(PragmaCall *call)
{
    i64 number;
    if (call->has_value && is_number(call->value, &number) && number >= 0) {
        Err err = keep(call, number);
        if (err != OK) return err;
    }
    return pragma__one_number(call, kept_value(call));
}

/* A number; less than 0, and what is none, is 0. */
Err
pragma__kept_limit(PragmaCall *call)
{
    if (call->has_value) {
        Err err = keep(call, MAX_OF(pragma__value_number(call->value), 0));
        if (err != OK) return err;
    }
    return pragma__one_number(call, kept_value(call));
}

Err
pragma__journal_size_limit(PragmaCall *call)
{
    if (call->has_value) {
        Err err = keep(call, MAX_OF(pragma__value_number(call->value), -1));
        if (err != OK) return err;
    }
    return pragma__one_number(call, kept_value(call));
}

Err
pragma__temp_store(PragmaCall *call)
{
    if (!call->has_value) return pragma__one_number(call, kept_value(call));
    Slice value = call->value;
    bool file = slice_equal_nocase(value, SLICE_LITERAL("file"));
    bool memory = slice_equal_nocase(value, SLICE_LITERAL("memory"));
    bool digit = value.bytes > 0 && value.p[0] >= '0' && value.p[0] <= '2';
    return keep(call, file ? 1 : memory ? 2 : digit ? value.p[0] - '0' : 0);
}

Err
pragma__secure_delete(PragmaCall *call)
{
    if (call->has_value) {
        bool fast = slice_equal_nocase(call->value, SLICE_LITERAL("fast"));
        Err err = keep(call, fast ? 2 : pragma__is_true(call->value));
        if (err != OK) return err;
    }
    return pragma__one_number(call, kept_value(call));
}

/* Off is 0; on is the number that SQLite computes from its cache's size. */
Err
pragma__cache_spill(PragmaCall *call)
{
    if (!call->has_value) return pragma__one_number(call, kept_value(call));
    return keep(call, slice_equal_nocase(call->value, SLICE_LITERAL("off")) ||
                              slice_equal_nocase(call->value, SLICE_LITERAL("0"))
                          ? 0
                          : call->def->number);
}

Err
pragma__locking_mode(PragmaCall *call)
{
    bool exclusive = slice_equal_nocase(call->value, SLICE_LITERAL("exclusive"));
    if (call->has_value &&
        (exclusive || slice_equal_nocase(call->value, SLICE_LITERAL("normal")))) {
        Err err = keep(call, exclusive);
        if (err != OK) return err;
    }
    return pragma__one_text(call, kept_value(call) != 0 ? "exclusive" : "normal");
}

/* 0 takes the setting back. */
Err
pragma__default_cache_size(PragmaCall *call)
{
    if (!call->has_value) return pragma__one_number(call, kept_value(call));
    i64 number = pragma__value_number(call->value);
    if (number < 0) number = -number;
    if (number == 0) number = call->def->number;
    call->session->cache_size = number;
    return keep(call, number);
}

/* ---- with a meaning ---- */

static Err
flag(PragmaCall *call, bool *setting, bool only_outside)
{
    if (!call->has_value) return pragma__one_number(call, *setting);
    if (only_outside && call->session->in_transaction) return OK;
    Session *session = call->session;
    bool value = pragma__is_true(call->value);
    bool at_run_time = setting == &session->query_only || setting == &session->defer_foreign_keys;
    if (*setting != value && !at_run_time) session->environment++; /* Plans are made anew. */
    *setting = value;
    session->exec_env.foreign_keys = session->foreign_keys;
    session->exec_env.recursive_triggers = session->recursive_triggers;
    session->exec_env.ignore_check = session->ignore_check;
    session->func_env.case_sensitive_like = session->case_sensitive_like;
    return OK;
}

Err
pragma__foreign_keys(PragmaCall *call)
{
    return flag(call, &call->session->foreign_keys, true);
}

Err
pragma__recursive_triggers(PragmaCall *call)
{
    return flag(call, &call->session->recursive_triggers, false);
}

Err
pragma__defer_foreign_keys(PragmaCall *call)
{
    Session *session = call->session;
    Err err = flag(call, &session->defer_foreign_keys, false);
    session->exec_env.defer_foreign_keys = session->defer_foreign_keys;
    return err;
}

Err
pragma__cache_size(PragmaCall *call)
{
    Session *session = call->session;
    if (!call->has_value) return pragma__one_number(call, session->cache_size);
    session->cache_size = pragma__value_number(call->value);
    return OK;
}

/* Bytes a statement may hold in sorts, hash tables and the like before it spills; 0: default. */
Err
pragma__memory_budget(PragmaCall *call)
{
    u64 *budget = &call->session->exec_env.memory_budget_bytes;
    if (!call->has_value) return pragma__one_number(call, (i64)*budget);
    i64 bytes = pragma__value_number(call->value);
    *budget = bytes > 0 ? (u64)bytes : 0;
    return OK;
}

/* A cap may be lowered, and raised again up to what the session was opened with; 0: none. */
static u64
cap_from(const PragmaCall *call, u64 ceiling)
{
    i64 bytes = pragma__value_number(call->value);
    if (bytes <= 0 || (ceiling != 0 && (u64)bytes > ceiling)) return ceiling;
    return (u64)bytes;
}

/* Bytes that one statement may use. */
Err
pragma__statement_memory(PragmaCall *call)
{
    Session *session = call->session;
    if (!call->has_value) return pragma__one_number(call, (i64)session->statement_bytes_max);
    session->statement_bytes_max = cap_from(call, session->options.statement_bytes_max);
    session->exec_env.statement_bytes_max = session->statement_bytes_max;
    return OK;
}

/* Bytes that all statements of the session may use together. */
Err
pragma__session_memory(PragmaCall *call)
{
    Session *session = call->session;
    if (!call->has_value) return pragma__one_number(call, (i64)session->account.cap_bytes);
    session->account.cap_bytes = cap_from(call, session->options.session_bytes_max);
    return OK;
}

/* Bytes of the whole process: only ever lowered.  SQLite: sqlite3_hard_heap_limit64(). */
Err
pragma__hard_heap_limit(PragmaCall *call)
{
    MemAccount *account = rt_process_account(call->session->process);
    i64 bytes = call->has_value ? pragma__value_number(call->value) : 0;
    if (bytes > 0 && (account->cap_bytes == 0 || (u64)bytes < account->cap_bytes))
        account->cap_bytes = (u64)bytes;
    return pragma__one_number(call, (i64)account->cap_bytes);
}

/* ---- for tests: results must not depend on these ---- */

/* Rows asked of a statement's root at once; 0: growing. */
Err
pragma__batch_rows(PragmaCall *call)
{
    u32 *rows = &call->session->exec_env.batch_rows;
    if (!call->has_value) return pragma__one_number(call, *rows);
    i64 number = pragma__value_number(call->value);
    *rows = (u32)MIN_OF(MAX_OF(number, (i64)0), (i64)BATCH_ROWS_MAX);
    return OK;
}

/* Drop what was read ahead after so many rows; 0: never. */
Err
pragma__trip_every(PragmaCall *call)
{
    u32 *rows = &call->session->exec_env.trip_every;
    if (!call->has_value) return pragma__one_number(call, *rows);
    i64 number = pragma__value_number(call->value);
    *rows = (u32)MIN_OF(MAX_OF(number, (i64)0), (i64)U32_MAX);
    return OK;
}

/* Which plans are made where there is a choice. */
Err
pragma__plans(PragmaCall *call)
{
    static const char *const names[] = {"free", "hash", "loop", "as_written", "plain"};
    STATIC_ASSERT(COUNT_OF(names) == SESSION_PLANS);
    Session *session = call->session;
    for (u8 i = 0; call->has_value && i < COUNT_OF(names); i++) {
        if (!slice_equal_nocase(call->value, SLICE(names[i], strlen(names[i])))) continue;
        session->plans = i;
        session->environment++; /* Plans are made anew. */
        return OK;
    }
    return pragma__one_text(call, names[session->plans]);
}

/* ---- */

Err
pragma__query_only(PragmaCall *call)
{
    return flag(call, &call->session->query_only, false);
}

Err
pragma__ignore_check(PragmaCall *call)
{
    return flag(call, &call->session->ignore_check, false);
}

Err
pragma__reverse(PragmaCall *call)
{
    return flag(call, &call->session->reverse_unordered, false);
}

Err
pragma__count_changes(PragmaCall *call)
{
    return flag(call, &call->session->count_changes, false);
}

Err
pragma__full_column_names(PragmaCall *call)
{
    return flag(call, &call->session->full_column_names, false);
}

Err
pragma__short_column_names(PragmaCall *call)
{
    Session *session = call->session;
    bool on = !session->long_column_names;
    Err err = flag(call, &on, false);
    session->long_column_names = !on;
    return err;
}

Err
pragma__writable_schema(PragmaCall *call)
{
    return flag(call, &call->session->reserved_names, false);
}

Err
pragma__case_sensitive_like(PragmaCall *call)
{
    if (!call->has_value) return OK;
    return flag(call, &call->session->case_sensitive_like, false);
}

/* OFF 0, NORMAL 1, FULL 2, EXTRA 3; what is no level is NORMAL. */
static u32
safety_level(Slice value)
{
    static const struct {
        const char *word;
        u32 level;
    } words[] = {{"off", 0}, {"no", 0},   {"false", 0}, {"on", 1},
                 {"yes", 1}, {"true", 1}, {"full", 2},  {"extra", 3}};
    for (u32 i = 0; i < COUNT_OF(words); i++) {
        if (slice_equal_nocase(value, SLICE(words[i].word, strlen(words[i].word))))
            return words[i].level;
    }
    if (value.bytes == 0 || value.p[0] < '0' || value.p[0] > '9') return 1;
    u32 level = ((u32)pragma__value_number(value) + 1) & 7;
    return level == 0 ? 0 : MIN_OF(level - 1, 3u);
}

Err
pragma__synchronous(PragmaCall *call)
{
    Session *session = call->session;
    static const StoreSync levels[] = {STORE_SYNC_OFF, STORE_SYNC_NORMAL, STORE_SYNC_FULL};
    if (!call->has_value) {
        i64 kept = kept_value(call);
        return pragma__one_number(call, session->options.sync == STORE_SYNC_FULL ? MAX_OF(kept, 2)
                                        : session->options.sync == STORE_SYNC_NORMAL ? 1
                                                                                     : 0);
    }
    if (session->in_transaction) {
        return session_set_error(session, ERR_SQL,
                                 "Safety level may not be changed inside a transaction");
    }
    u32 level = safety_level(call->value);
    if (!remember(call, level)) return session__fail(session, ERR_NOMEM, NULL);
    session->options.sync = levels[MIN_OF(level, 2u)];
    return OK;
}

Err
pragma__busy_timeout(PragmaCall *call)
{
    Session *session = call->session;
    i64 ms;
    if (call->has_value && is_number(call->value, &ms)) {
        session_set_busy_timeout(session, ms <= 0 ? 0 : (u64)ms * 1000000);
    }
    return pragma__one_number(call, (i64)(session->options.busy_timeout_ns / 1000000));
}

Err
pragma__journal_mode(PragmaCall *call)
{
    /* Single-writer mode behaves as WAL does, whatever is asked for. */
    if (store_path(session_store(call->session))[0] != 0) return pragma__one_text(call, "wal");
    bool off = slice_equal_nocase(call->value, SLICE_LITERAL("off"));
    if (call->has_value && (off || slice_equal_nocase(call->value, SLICE_LITERAL("memory")))) {
        if (!remember(call, off)) return session__fail(call->session, ERR_NOMEM, NULL);
    }
    return pragma__one_text(call, kept_value(call) != 0 ? "off" : "memory");
}

Err
pragma__writers(PragmaCall *call)
{
    Session *session = call->session;
    if (call->has_value) {
        bool single = slice_equal_nocase(call->value, SLICE_LITERAL("single"));
        if (!single && !slice_equal_nocase(call->value, SLICE_LITERAL("multi"))) {
            return session_set_error(session, ERR_SQL,
                                     "weft_writers is either \"single\" or \"multi\"");
        }
        if (session->in_transaction || session->running > 0) {
            return session_set_error(session, ERR_SQL,
                                     "weft_writers may not be changed inside a transaction");
        }
        session->options.single_writer = single;
        session->exec_env.multi_writers = !single;
    }
    return pragma__one_text(call, session->options.single_writer ? "single" : "multi");
}
