/*
 * host_func.c -- sqlite3_create_function and its kin, and the calls made from inside a function.
 *
 * The bridge makes one FuncDef a registration.  A call builds the argument values on the stack or
 * in the call's arena, runs the program's function, and copies its result into the arena.
 */
#include "capi/host_func.h"

#include <limits.h>

/* An aggregate's state in exec: what sqlite3_aggregate_context handed out. */
typedef struct HostState {
    void *memory;
    int steps;
    bool ended; /* xFinal was called: once for each state that xStep has begun. */
} HostState;

#define ARGS_ON_STACK 8

/* ---- calls ---- */

static Err
call_host(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out,
          void (*function)(sqlite3_context *, int, sqlite3_value **))
{
    sqlite3_value on_stack[ARGS_ON_STACK] = {0};
    sqlite3_value *pointer_on_stack[ARGS_ON_STACK];
    sqlite3_value *value = on_stack;
    sqlite3_value **pointer = pointer_on_stack;
    if (argc > ARGS_ON_STACK) {
        value = MEM_NEW_ARRAY(sqlite3_value, argc);
        pointer = MEM_NEW_ARRAY(sqlite3_value *, argc);
        if (value == NULL || pointer == NULL) {
            mem_free(value);
            mem_free(pointer);
            return ERR_NOMEM;
        }
    }
    for (u32 i = 0; i < argc; i++) {
        value[i].cell = argv[i];
        pointer[i] = &value[i];
    }
    sqlite3_context context = {
        .call = call,
        .func = (HostFunc *)call->def->user_data,
        .db = ((HostFunc *)call->def->user_data)->db,
        .result = result_out,
    };
    function(&context, (int)argc, pointer);
    for (u32 i = 0; i < argc; i++)
        value__clear(&value[i]);
    if (value != on_stack) {
        mem_free(value);
        mem_free(pointer);
    }
    return context.err;
}

static Err
host_scalar(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    return call_host(call, argc, argv, result_out, ((HostFunc *)call->def->user_data)->function);
}

static Err
host_step(FuncCall *call, u32 argc, const Cell *argv)
{
    ((HostState *)call->state)->steps++;
    return call_host(call, argc, argv, NULL, ((HostFunc *)call->def->user_data)->step);
}

static Err
host_inverse(FuncCall *call, u32 argc, const Cell *argv)
{
    return call_host(call, argc, argv, NULL, ((HostFunc *)call->def->user_data)->inverse);
}

static Err
host_value(FuncCall *call, Cell *result_out)
{
    HostFunc *func = call->def->user_data;
    sqlite3_context context = {.call = call, .func = func, .db = func->db, .result = result_out};
    func->value(&context);
    return context.err;
}

static Err
host_final(FuncCall *call, Cell *result_out)
{
    HostFunc *func = call->def->user_data;
    sqlite3_context context = {.call = call, .func = func, .db = func->db, .result = result_out};
    ((HostState *)call->state)->ended = true;
    func->final(&context);
    return context.err;
}

static void
host_state_free(FuncCall *call)
{
    HostState *state = call->state;
    if (state->steps > 0 && !state->ended) {
        /* The program's own memory hangs on it; nobody asks for the result any more. */
        ErrMsg *msg = call->msg, unheard = {0};
        call->msg = &unheard;
        (void)host_final(call, NULL);
        call->msg = msg;
        err_clear(&unheard);
    }
    mem_free(state->memory);
    state->memory = NULL;
}

/* ---- registering ---- */

static void
destroy_func(HostFunc *func)
{
    if (func->destroy != NULL) func->destroy(func->app);
    func->destroy = NULL;
}

static HostRegistry *
registry(sqlite3 *db)
{
    if (db->host == NULL) db->host = MEM_NEW(HostRegistry);
    return db->host;
}

/* Build the table of all functions that are in force, and hand it to the session. */
static Err
publish(sqlite3 *db)
{
    HostRegistry *host = db->host;
    u32 count = 0;
    for (HostFunc *func = host->func; func != NULL; func = func->next)
        count += !func->is_replaced;
    const FuncDef **defs = MEM_NEW_ARRAY(const FuncDef *, count + 1);
    if (defs == NULL) return ERR_NOMEM;
    u32 at = 0;
    for (HostFunc *func = host->func; func != NULL; func = func->next) {
        if (!func->is_replaced) defs[at++] = &func->def;
    }
    FuncTable table;
    Err err = func_table_init(&table, session_builtin_functions(), defs, count);
    if (err != OK) {
        mem_free(defs);
        return err;
    }
    func_table_free(&host->table);
    mem_free(host->defs);
    host->table = table;
    host->defs = defs;
    session_set_functions(db->session, &host->table);
    return OK;
}

static HostFunc *
find_func(const HostRegistry *host, const char *name, int argc)
{
    for (HostFunc *func = host->func; func != NULL; func = func->next) {
        if (!func->is_replaced && func->def.argc_max == argc &&
            text_compare_nocase(func->name, name) == 0) {
            return func;
        }
    }
    return NULL;
}

static u32
func_flags(int encoding)
{
    u32 flags = FUNC_FALLIBLE;
    if ((encoding & SQLITE_DETERMINISTIC) == 0) flags |= FUNC_VOLATILE;
    if ((encoding & SQLITE_DIRECTONLY) != 0) flags |= FUNC_DIRECT_ONLY;
    if ((encoding & SQLITE_INNOCUOUS) != 0) flags |= FUNC_INNOCUOUS;
    if ((encoding & SQLITE_SUBTYPE) != 0) flags |= FUNC_SUBTYPE;
    if ((encoding & SQLITE_RESULT_SUBTYPE) != 0) flags |= FUNC_RESULT_SUBTYPE;
    return flags;
}

static HostFunc *
make_func(sqlite3 *db, const char *name, int argc, int encoding)
{
    size_t bytes = strlen(name);
    HostFunc *func = mem_alloc_zeroed(sizeof(*func) + bytes + 1);
    if (func == NULL) return NULL;
    for (size_t i = 0; i < bytes; i++) {
        char c = name[i];
        func->name[i] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
    }
    func->db = db;
    func->def = (FuncDef){
        .name = func->name,
        .argc_min = (i16)(argc < 0 ? 0 : argc),
        .argc_max = (i16)argc,
        .flags = func_flags(encoding),
        .user_data = func,
    };
    return func;
}

HostFunc *
host__scalar_new(sqlite3 *db, const char *name, int argc,
                 void (*function)(sqlite3_context *, int, sqlite3_value **), void *app)
{
    HostFunc *func = make_func(db, name, argc, 0);
    if (func == NULL) return NULL;
    func->def.kind = FUNC_SCALAR;
    func->def.scalar = host_scalar;
    func->app = app;
    func->function = function;
    return func;
}

static int
register_func(sqlite3 *db, const char *name, int argc, int encoding, HostFunc template)
{
    int code = SQLITE_OK;
    if (!capi__db_ok(db) || db->session == NULL || name == NULL || strlen(name) > 255 ||
        argc < -1 || argc > 1000) {
        if (template.destroy != NULL) template.destroy(template.app);
        return SQLITE_MISUSE;
    }
    session_lock(db->session);
    HostRegistry *host = registry(db);
    HostFunc *old = host == NULL ? NULL : find_func(host, name, argc);
    bool deletes = template.function == NULL && template.step == NULL;
    HostFunc *func = host == NULL || deletes ? NULL : make_func(db, name, argc, encoding);
    if (host == NULL || (func == NULL && !deletes)) {
        code = capi__fail(db, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    } else if (old != NULL && session_is_running(db->session)) {
        code = capi__fail(db, ERR_BUSY,
                          "unable to delete/modify user-function due to active statements");
    }
    if (code != SQLITE_OK) {
        mem_free(func);
        if (template.destroy != NULL) template.destroy(template.app);
        session_unlock(db->session);
        return code;
    }
    if (func != NULL) {
        FuncDef def = func->def;
        def.kind = template.function != NULL ? FUNC_SCALAR : FUNC_AGGREGATE;
        def.scalar = template.function != NULL ? host_scalar : NULL;
        def.step = template.step != NULL ? host_step : NULL;
        def.inverse = template.inverse != NULL ? host_inverse : NULL;
        def.value = template.value != NULL ? host_value : NULL;
        def.final = template.step != NULL ? host_final : NULL;
        def.state_bytes = template.step != NULL ? (u32)sizeof(HostState) : 0;
        def.state_free = template.step != NULL ? host_state_free : NULL;
        func->def = def;
        func->app = template.app;
        func->destroy = template.destroy;
        func->function = template.function;
        func->step = template.step;
        func->inverse = template.inverse;
        func->final = template.final;
        func->value = template.value;
        func->next = host->func;
        host->func = func;
    }
    if (old != NULL) old->is_replaced = true;
    Err err = publish(db);
    if (old != NULL) destroy_func(old);
    session_unlock(db->session);
    return err == OK ? SQLITE_OK : capi__fail(db, err, "%s", err_text(err));
}

int
sqlite3_create_function_v2(sqlite3 *db, const char *name, int argc, int encoding, void *app,
                           void (*function)(sqlite3_context *, int, sqlite3_value **),
                           void (*step)(sqlite3_context *, int, sqlite3_value **),
                           void (*final)(sqlite3_context *), void (*destroy)(void *))
{
    HostFunc template = {
        .app = app, .destroy = destroy, .function = function, .step = step, .final = final};
    if ((function != NULL && (step != NULL || final != NULL)) ||
        (step == NULL) != (final == NULL)) {
        if (destroy != NULL) destroy(app);
        return SQLITE_MISUSE;
    }
    return register_func(db, name, argc, encoding, template);
}

int
sqlite3_create_function(sqlite3 *db, const char *name, int argc, int encoding, void *app,
                        void (*function)(sqlite3_context *, int, sqlite3_value **),
                        void (*step)(sqlite3_context *, int, sqlite3_value **),
                        void (*final)(sqlite3_context *))
{
    return sqlite3_create_function_v2(db, name, argc, encoding, app, function, step, final, NULL);
}

int
sqlite3_create_function16(sqlite3 *db, const void *name16, int argc, int encoding, void *app,
                          void (*function)(sqlite3_context *, int, sqlite3_value **),
                          void (*step)(sqlite3_context *, int, sqlite3_value **),
                          void (*final)(sqlite3_context *))
{
    size_t bytes;
    char *name = capi__from_utf16(name16, -1, &bytes);
    if (name == NULL) return SQLITE_NOMEM;
    int code = sqlite3_create_function(db, name, argc, encoding, app, function, step, final);
    mem_free(name);
    return code;
}

int
sqlite3_create_window_function(sqlite3 *db, const char *name, int argc, int encoding, void *app,
                               void (*step)(sqlite3_context *, int, sqlite3_value **),
                               void (*final)(sqlite3_context *), void (*value)(sqlite3_context *),
                               void (*inverse)(sqlite3_context *, int, sqlite3_value **),
                               void (*destroy)(void *))
{
    HostFunc template = {.app = app,
                         .destroy = destroy,
                         .step = step,
                         .final = final,
                         .value = value,
                         .inverse = inverse};
    if ((step == NULL) != (final == NULL) || (value == NULL) != (inverse == NULL)) {
        if (destroy != NULL) destroy(app);
        return SQLITE_MISUSE;
    }
    return register_func(db, name, argc, encoding, template);
}

void
host__free(sqlite3 *db)
{
    HostRegistry *host = db->host;
    if (host == NULL) return;
    while (host->func != NULL) {
        HostFunc *next = host->func->next;
        destroy_func(host->func);
        mem_free(host->func);
        host->func = next;
    }
    while (host->collation != NULL) {
        HostCollation *next = host->collation->next;
        if (host->collation->destroy != NULL) host->collation->destroy(host->collation->app);
        mem_free(host->collation);
        host->collation = next;
    }
    func_table_free(&host->table);
    mem_free(host->defs);
    mem_free(host);
    db->host = NULL;
}

/* ---- inside a call ---- */

void *
sqlite3_user_data(sqlite3_context *context)
{
    return context == NULL || context->func == NULL ? NULL : context->func->app;
}

sqlite3 *
sqlite3_context_db_handle(sqlite3_context *context)
{
    return context == NULL ? NULL : context->db;
}

void *
sqlite3_aggregate_context(sqlite3_context *context, int bytes)
{
    if (context == NULL) return NULL;
    HostState *state = context->call->state;
    if (state == NULL) return NULL;
    if (state->memory == NULL && bytes > 0) state->memory = mem_alloc_zeroed((size_t)bytes);
    return state->memory;
}

int
sqlite3_aggregate_count(sqlite3_context *context)
{
    if (context == NULL || context->call->state == NULL) return 0;
    return ((HostState *)context->call->state)->steps;
}

void *
sqlite3_get_auxdata(sqlite3_context *context, int at)
{
    if (context == NULL) return NULL;
    FuncCall *call = context->call;
    return at >= 0 && (u32)at < call->aux_count ? call->aux[at] : NULL;
}

void
sqlite3_set_auxdata(sqlite3_context *context, int at, void *data, void (*destroy)(void *))
{
    FuncCall *call = context == NULL ? NULL : context->call;
    if (call == NULL || at < 0 || (u32)at >= call->aux_count) {
        if (destroy != NULL) destroy(data);
        return;
    }
    if (call->aux[at] != NULL && call->aux_free[at] != NULL) call->aux_free[at](call->aux[at]);
    call->aux[at] = data;
    call->aux_free[at] = destroy;
}

static void
set_result(sqlite3_context *context, Cell cell)
{
    context->has_result = true;
    if (context->result == NULL) return;
    Err err = cell_copy(&cell, context->call->arena, context->result);
    if (err != OK) context->err = err;
}

static void
result_bytes(sqlite3_context *context, Cell cell, sqlite3_uint64 bytes, void (*destroy)(void *))
{
    const void *p = cell.u.p;
    if (context == NULL) {
        if (destroy != SQLITE_STATIC && destroy != SQLITE_TRANSIENT) destroy((void *)(uintptr_t)p);
        return;
    }
    if (bytes > context->call->env->length_max) {
        sqlite3_result_error_toobig(context);
    } else if (p == NULL) {
        set_result(context, cell_null());
    } else {
        set_result(context, cell);
    }
    if (destroy != SQLITE_STATIC && destroy != SQLITE_TRANSIENT) destroy((void *)(uintptr_t)p);
}

void
sqlite3_result_null(sqlite3_context *context)
{
    if (context == NULL) return;
    set_result(context, cell_null());
}

void
sqlite3_result_int64(sqlite3_context *context, sqlite3_int64 value)
{
    if (context == NULL) return;
    set_result(context, cell_int(value));
}

void
sqlite3_result_int(sqlite3_context *context, int value)
{
    if (context == NULL) return;
    set_result(context, cell_int(value));
}

void
sqlite3_result_double(sqlite3_context *context, double value)
{
    if (context == NULL) return;
    set_result(context, cell_real(value));
}

void
sqlite3_result_text64(sqlite3_context *context, const char *text, sqlite3_uint64 bytes,
                      void (*destroy)(void *), unsigned char encoding)
{
    if (encoding != SQLITE_UTF8 && encoding != SQLITE_UTF8_ZT) {
        sqlite3_result_text16(context, text, (int)(bytes & ~(sqlite3_uint64)1), destroy);
        return;
    }
    result_bytes(context, cell_text(text, (size_t)bytes), bytes, destroy);
}

void
sqlite3_result_text(sqlite3_context *context, const char *text, int bytes, void (*destroy)(void *))
{
    size_t length = text == NULL ? 0 : bytes < 0 ? strlen(text) : (size_t)bytes;
    result_bytes(context, cell_text(text, length), length, destroy);
}

void
sqlite3_result_text16(sqlite3_context *context, const void *text16, int bytes16,
                      void (*destroy)(void *))
{
    size_t bytes;
    char *text = text16 == NULL ? NULL : capi__from_utf16(text16, bytes16, &bytes);
    if (context == NULL) {
        mem_free(text);
    } else if (text == NULL && text16 != NULL) {
        sqlite3_result_error_nomem(context);
    } else if (text == NULL) {
        sqlite3_result_null(context);
    } else {
        set_result(context, cell_text(text, bytes));
        mem_free(text);
    }
    if (destroy != SQLITE_STATIC && destroy != SQLITE_TRANSIENT) destroy((void *)(uintptr_t)text16);
}

/* UTF-16 in a byte order of its own. */
static void
result_swapped(sqlite3_context *context, const void *text16, int bytes16, void (*destroy)(void *))
{
    const u8 *from = text16;
    size_t units = 0;
    if (text16 == NULL || context == NULL) {
        sqlite3_result_null(context);
        if (text16 != NULL && destroy != SQLITE_STATIC && destroy != SQLITE_TRANSIENT)
            destroy((void *)(uintptr_t)text16);
        return;
    }
    while (bytes16 < 0 ? load_u16(from + units * 2) != 0 : units < (size_t)bytes16 / 2)
        units++;
    u16 *swapped = MEM_NEW_ARRAY(u16, units + 1);
    if (swapped == NULL) {
        sqlite3_result_error_nomem(context);
    } else {
        for (size_t i = 0; i < units; i++)
            swapped[i] = __builtin_bswap16(load_u16(from + i * 2));
        sqlite3_result_text16(context, swapped, (int)(units * 2), SQLITE_TRANSIENT);
        mem_free(swapped);
    }
    if (destroy != SQLITE_STATIC && destroy != SQLITE_TRANSIENT) destroy((void *)(uintptr_t)text16);
}

void
sqlite3_result_text16le(sqlite3_context *context, const void *text16, int bytes16,
                        void (*destroy)(void *))
{
    sqlite3_result_text16(context, text16, bytes16, destroy);
}

void
sqlite3_result_text16be(sqlite3_context *context, const void *text16, int bytes16,
                        void (*destroy)(void *))
{
    result_swapped(context, text16, bytes16, destroy);
}

void
sqlite3_result_blob64(sqlite3_context *context, const void *blob, sqlite3_uint64 bytes,
                      void (*destroy)(void *))
{
    result_bytes(context, cell_blob(blob, (size_t)bytes), bytes, destroy);
}

void
sqlite3_result_blob(sqlite3_context *context, const void *blob, int bytes, void (*destroy)(void *))
{
    sqlite3_result_blob64(context, blob, bytes < 0 ? 0 : (sqlite3_uint64)bytes, destroy);
}

int
sqlite3_result_zeroblob64(sqlite3_context *context, sqlite3_uint64 bytes)
{
    if (context == NULL) return SQLITE_MISUSE;
    if (bytes > context->call->env->length_max) {
        sqlite3_result_error_toobig(context);
        return SQLITE_TOOBIG;
    }
    context->has_result = true;
    if (context->result != NULL) {
        *context->result = (Cell){.type = CELL_BLOB, .bytes = (u32)bytes, .flags = CELL_ZEROBLOB};
    }
    return SQLITE_OK;
}

void
sqlite3_result_zeroblob(sqlite3_context *context, int bytes)
{
    if (context == NULL) return;
    (void)sqlite3_result_zeroblob64(context, bytes < 0 ? 0 : (sqlite3_uint64)bytes);
}

void
sqlite3_result_value(sqlite3_context *context, sqlite3_value *value)
{
    if (context == NULL) return;
    set_result(context, value == NULL ? cell_null() : value->cell);
}

void
sqlite3_result_subtype(sqlite3_context *context, unsigned int subtype)
{
    if (context == NULL) return;
    if (context->result != NULL) context->result->subtype = (u8)subtype;
}

void
sqlite3_result_error(sqlite3_context *context, const char *text, int bytes)
{
    if (context == NULL) return;
    if (text == NULL) {
        text = "";
        bytes = 0;
    }
    size_t length = bytes < 0 ? strlen(text) : (size_t)bytes;
    context->err = err_set(context->call->msg, ERR_SQL, "%.*s", (int)length, text);
}

void
sqlite3_result_error16(sqlite3_context *context, const void *text16, int bytes16)
{
    if (context == NULL) return;
    size_t bytes;
    char *text = capi__from_utf16(text16, bytes16, &bytes);
    sqlite3_result_error(context, text == NULL ? "" : text, -1);
    mem_free(text);
}

void
sqlite3_result_error_code(sqlite3_context *context, int code)
{
    if (context == NULL) return;
    const char *text = sqlite3_errstr(code);
    if (context->err != OK && context->call->msg != NULL && context->call->msg->text != NULL) {
        context->call->msg->err = ERR_HOST;
    } else {
        err_set(context->call->msg, ERR_HOST, "%s", text);
    }
    if (context->call->msg != NULL) context->call->msg->host_code = code;
    context->err = ERR_HOST;
}

void
sqlite3_result_error_nomem(sqlite3_context *context)
{
    if (context == NULL) return;
    context->err = err_set(context->call->msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
}

void
sqlite3_result_error_toobig(sqlite3_context *context)
{
    if (context == NULL) return;
    context->err = err_set(context->call->msg, ERR_TOOBIG, "%s", err_text(ERR_TOOBIG));
}

/* ---- collations ---- */

static int
compare_host(void *arg, Slice a, Slice b)
{
    const HostCollation *host = arg;
    return host->compare(host->app, (int)MIN_OF(a.bytes, (size_t)INT_MAX), a.p,
                         (int)MIN_OF(b.bytes, (size_t)INT_MAX), b.p);
}

static const Collation *
find_registered(const sqlite3 *db, Slice name)
{
    const HostRegistry *host = db->host;
    if (host == NULL) return NULL;
    for (HostCollation *at = host->collation; at != NULL; at = at->next) {
        if (!at->is_replaced && slice_equal_nocase(name, SLICE(at->name, strlen(at->name)))) {
            return &at->collation;
        }
    }
    return NULL;
}

/* One that is not registered may be made by the program when it is asked for. */
static const Collation *
find_collation(void *arg, Slice name)
{
    sqlite3 *db = arg;
    const Collation *found = find_registered(db, name);
    if (found != NULL || (db->collation_needed == NULL && db->collation_needed16 == NULL)) {
        return found;
    }
    char *text = mem_strndup(name.p, name.bytes);
    if (text != NULL && db->collation_needed != NULL) {
        db->collation_needed(db->collation_needed_arg, db, SQLITE_UTF8, text);
    } else if (text != NULL) {
        int bytes16;
        void *text16 = capi__to_utf16(text, name.bytes, &bytes16);
        if (text16 != NULL)
            db->collation_needed16(db->collation_needed_arg, db, SQLITE_UTF16LE, text16);
        mem_free(text16);
    }
    mem_free(text);
    return find_registered(db, name);
}

void
host__lend(sqlite3 *db, Session *to)
{
    if (db->host != NULL && db->host->defs != NULL) session_set_functions(to, &db->host->table);
    session_set_collations(to, find_collation, db);
}

static int
set_needed(sqlite3 *db, void *arg, void (*needed)(void *, sqlite3 *, int, const char *),
           void (*needed16)(void *, sqlite3 *, int, const void *))
{
    if (!capi__db_ok(db) || db->session == NULL) return SQLITE_MISUSE;
    session_lock(db->session);
    db->collation_needed = needed;
    db->collation_needed16 = needed16;
    db->collation_needed_arg = arg;
    session_set_collations(db->session, find_collation, db);
    session_unlock(db->session);
    return SQLITE_OK;
}

int
sqlite3_collation_needed(sqlite3 *db, void *arg,
                         void (*needed)(void *, sqlite3 *, int, const char *))
{
    return set_needed(db, arg, needed, NULL);
}

int
sqlite3_collation_needed16(sqlite3 *db, void *arg,
                           void (*needed)(void *, sqlite3 *, int, const void *))
{
    return set_needed(db, arg, NULL, needed);
}

int
sqlite3_create_collation16(sqlite3 *db, const void *name16, int encoding, void *app,
                           int (*compare)(void *, int, const void *, int, const void *))
{
    size_t bytes;
    if (name16 == NULL) return SQLITE_MISUSE;
    char *name = capi__from_utf16(name16, -1, &bytes);
    if (name == NULL) return SQLITE_NOMEM;
    int code = sqlite3_create_collation(db, name, encoding, app, compare);
    mem_free(name);
    return code;
}

int
sqlite3_create_collation_v2(sqlite3 *db, const char *name, int encoding, void *app,
                            int (*compare)(void *, int, const void *, int, const void *),
                            void (*destroy)(void *))
{
    (void)encoding;
    if (!capi__db_ok(db) || db->session == NULL || name == NULL) return SQLITE_MISUSE;
    session_lock(db->session);
    HostRegistry *host = registry(db);
    size_t bytes = strlen(name);
    HostCollation *made = host == NULL || compare == NULL
                              ? NULL
                              : mem_alloc_zeroed(sizeof(*made) + bytes + 1);
    if (host == NULL || (made == NULL && compare != NULL)) {
        session_unlock(db->session);
        return capi__fail(db, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    if (find_registered(db, SLICE(name, bytes)) != NULL && session_is_running(db->session)) {
        mem_free(made);
        session_unlock(db->session);
        return capi__fail(db, ERR_BUSY,
                          "unable to delete/modify collation sequence due to active statements");
    }
    for (HostCollation *at = host->collation; at != NULL; at = at->next) {
        if (at->is_replaced || text_compare_nocase(at->name, name) != 0) continue;
        at->is_replaced = true;
        if (at->destroy != NULL) at->destroy(at->app);
        at->destroy = NULL;
    }
    if (made != NULL) {
        memcpy(made->name, name, bytes + 1);
        made->app = app;
        made->destroy = destroy;
        made->compare = compare;
        made->collation = (Collation){
            .kind = COLLATION_HOST, .name = made->name, .compare = compare_host, .arg = made};
        made->next = host->collation;
        host->collation = made;
    }
    session_set_collations(db->session, find_collation, db);
    session_unlock(db->session);
    return SQLITE_OK;
}

int
sqlite3_create_collation(sqlite3 *db, const char *name, int encoding, void *app,
                         int (*compare)(void *, int, const void *, int, const void *))
{
    return sqlite3_create_collation_v2(db, name, encoding, app, compare, NULL);
}
