/*
 * func_json_each.c -- json_each(), json_tree() and their jsonb_ forms.
 *
 * A walk stands on one element: `at` is the element, or its label inside an object.  For json_tree
 * the arrays and objects it is in are a stack of levels; json_each has one level, or none if the
 * root is a scalar.
 */
#include "func/func_json.h"
#include "value/number.h"

enum {
    COLUMN_KEY,
    COLUMN_VALUE,
    COLUMN_TYPE,
    COLUMN_ATOM,
    COLUMN_ID,
    COLUMN_PARENT,
    COLUMN_FULLKEY,
    COLUMN_PATH,
    COLUMN_JSON,
    COLUMN_ROOT
};

static const char *const COLUMNS[] = {"key",    "value",   "type", "atom", "id",
                                      "parent", "fullkey", "path", "json", "root"};

/* An array or object that the walk is inside of. */
typedef struct Level {
    u32 head;       /* It, or its label. */
    u32 value, end; /* It, and where it ends. */
    u32 path_bytes; /* Length of the path without its own step. */
    i64 key;        /* Index of the member, in an array. */
} Level;

typedef struct Walk {
    JsonDoc doc;
    Buf json;   /* The argument's bytes: what column json shows. */
    Buf path;   /* Of the array or object around; it begins with the root. */
    Buf levels; /* Level */
    u32 root_bytes;
    u32 at, end;
    JsonbType type; /* Of what is around: ARRAY, OBJECT, or NULL. */
    i64 rowid;
    bool tree, binary;
    bool is_text; /* The argument was text. */
    bool begun;
} Walk;

static const JsonMode TEXT_MODE = {.binary = false};
static const JsonMode BINARY_MODE = {.binary = true};
static const FuncDef TEXT_DEF = {.name = "json_each", .user_data = (void *)(uintptr_t)&TEXT_MODE};
static const FuncDef BINARY_DEF = {.name = "jsonb_each",
                                   .user_data = (void *)(uintptr_t)&BINARY_MODE};

static FuncCall
scalar_call(const TableCall *call, bool binary)
{
    return (FuncCall){.def = binary ? &BINARY_DEF : &TEXT_DEF,
                      .env = call->env,
                      .arena = call->arena,
                      .msg = call->msg};
}

static Err
malformed(TableCall *call)
{
    return err_set(call->msg, ERR_SQL, "malformed JSON");
}

static u32
level_count(const Walk *walk)
{
    return (u32)(walk->levels.bytes / sizeof(Level));
}

static Level *
top(Walk *walk)
{
    return (Level *)(void *)(walk->levels.p + walk->levels.bytes) - 1;
}

/* The element itself, where `at` may be its label. */
static u32
element_at(const Walk *walk)
{
    if (walk->type != JSONB_OBJECT) return walk->at;
    u32 payload, head = func__jsonb_head(&walk->doc, walk->at, &payload);
    u32 value = walk->at + head + payload;
    return value < walk->doc.bytes ? value : walk->at;
}

static void
release(Walk *walk)
{
    func__json_free(&walk->doc);
    buf_free(&walk->json);
    buf_free(&walk->path);
    buf_free(&walk->levels);
    *walk = (Walk){0};
}

/* ---- beginning ---- */

/* Read the document; *ok_out false: it is NULL, there are no rows. */
static Err
start_document(TableCall *call, Walk *walk, const Cell *json, bool *ok_out)
{
    Slice text;
    *ok_out = false;
    if (json == NULL || json->type == CELL_NULL) return OK;
    Err err = cell_text_bytes(json, call->arena, &text);
    if (err == OK) err = buf_append(&walk->json, text.p, text.bytes);
    if (err != OK) return err;
    text = buf_slice(&walk->json);
    if (json->type == CELL_BLOB) {
        err = func__json_from_blob(text, &walk->doc, ok_out);
        if (err != OK || *ok_out) return err;
    }
    walk->is_text = true;
    err = func__json_parse(text.p == NULL ? SLICE("", 0) : text, &walk->doc, ok_out);
    return err == OK && !*ok_out ? malformed(call) : err;
}

/* Go to the root; *ok_out false: there is no such place. */
static Err
start_root(TableCall *call, Walk *walk, const Cell *root, u32 *at_out, bool *ok_out)
{
    *at_out = 0;
    *ok_out = root == NULL || root->type != CELL_NULL;
    if (root == NULL) {
        walk->root_bytes = 1;
        return buf_append_byte(&walk->path, '$');
    }
    if (!*ok_out) return OK;
    Slice path;
    FuncCall scalar = scalar_call(call, false);
    Err err = func__c_text_arg(&scalar, root, &path);
    if (err != OK) return err;
    if (path.bytes == 0 || path.p[0] != '$') {
        return func__json_path_error(&scalar, JSON_BAD_PATH, path);
    }
    walk->root_bytes = (u32)path.bytes;
    err = buf_append(&walk->path, path.p, path.bytes);
    if (err != OK || path.bytes == 1) return err;
    u32 label;
    JsonFound found;
    err = func__json_find(&walk->doc, SLICE(path.p + 1, path.bytes - 1), at_out, &label, &found);
    *ok_out = found == JSON_FOUND;
    if (err != OK || found == JSON_NOT_FOUND) return err;
    if (!*ok_out) return func__json_path_error(&scalar, JSON_BAD_PATH, path);
    walk->at = label != 0 ? label : *at_out;
    walk->type = label != 0 ? JSONB_OBJECT : JSONB_ARRAY;
    return OK;
}

static Err
start(TableCall *call, const Cell *const *arg)
{
    Walk *walk = call->state;
    bool ok;
    u32 at;
    release(walk);
    walk->tree = strstr(call->func->name, "tree") != NULL;
    walk->binary = call->func->name[4] == 'b';
    Err err = start_document(call, walk, arg[0], &ok);
    if (err == OK && ok) err = start_root(call, walk, arg[1], &at, &ok);
    if (err != OK || !ok) return err;
    u32 payload, head = func__jsonb_head(&walk->doc, at, &payload);
    if (head == 0) return malformed(call);
    walk->end = at + head + payload;
    JsonbType type = func__jsonb_type(&walk->doc, at);
    if (type < JSONB_ARRAY || walk->tree) return OK;
    walk->at = at + head;
    walk->type = type;
    Level level = {.head = walk->at, .value = at, .end = walk->end};
    return buf_append(&walk->levels, &level, sizeof(level));
}

/* ---- going on ---- */

/* Append the step to the element at hand: [n], .label or ."label". */
static Err
append_step(Walk *walk)
{
    if (walk->type == JSONB_ARRAY) {
        return buf_printf(&walk->path, "[%lld]", (long long)top(walk)->key);
    }
    u32 payload, head = func__jsonb_head(&walk->doc, walk->at, &payload);
    const u8 *label = walk->doc.p + walk->at + head;
    bool quote = payload == 0 || (*label >= '0' && *label <= '9');
    for (u32 i = 0; i < payload; i++) {
        u8 c = label[i];
        quote |= !((c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z'));
    }
    Err err = buf_append_text(&walk->path, quote ? ".\"" : ".");
    if (err == OK) err = buf_append(&walk->path, label, payload);
    return err == OK && quote ? buf_append_byte(&walk->path, '"') : err;
}

/* Into the array or object whose element is at `element`. */
static Err
descend(Walk *walk, u32 element, u32 head, u32 payload)
{
    Level level = {.head = walk->at,
                   .value = element,
                   .end = element + head + payload,
                   .path_bytes = (u32)walk->path.bytes,
                   .key = -1};
    Err err = OK;
    if (walk->type != JSONB_NULL && level_count(walk) > 0) err = append_step(walk);
    if (err == OK) err = buf_append(&walk->levels, &level, sizeof(level));
    walk->at = element + head;
    return err;
}

/* Out of all that ends here; the type of what is around. */
static void
ascend(Walk *walk)
{
    while (level_count(walk) > 0 && walk->at >= top(walk)->end) {
        walk->path.bytes = top(walk)->path_bytes;
        walk->levels.bytes -= sizeof(Level);
    }
    walk->type = level_count(walk) > 0 ? func__jsonb_type(&walk->doc, top(walk)->value)
                                       : JSONB_NULL;
}

static Err
advance(TableCall *call, Walk *walk)
{
    u32 element = element_at(walk), payload;
    u32 head = func__jsonb_head(&walk->doc, element, &payload);
    if (head == 0) return malformed(call);
    Err err = OK;
    bool inside = walk->tree && func__jsonb_type(&walk->doc, element) >= JSONB_ARRAY;
    u32 levels = level_count(walk);
    if (inside) {
        err = descend(walk, element, head, payload);
    } else {
        walk->at = element + head + payload;
    }
    if (err != OK) return err;
    if (inside || (walk->tree && levels > 0 && walk->at >= top(walk)->end)) ascend(walk);
    if (walk->type == JSONB_ARRAY && level_count(walk) > 0) top(walk)->key++;
    walk->rowid++;
    return OK;
}

static Err
next(TableCall *call, bool *row_out)
{
    Walk *walk = call->state;
    Err err = walk->begun ? advance(call, walk) : OK;
    walk->begun = true;
    *row_out = err == OK && walk->at < walk->end;
    return err;
}

/* ---- columns ---- */

/* Length of the path around the root itself, for the first row of json_tree. */
static Err
path_length(Walk *walk, u32 *bytes_out)
{
    u32 bytes = (u32)walk->path.bytes;
    *bytes_out = bytes;
    if (walk->rowid != 0 || !walk->tree) return OK;
    while (bytes > 1) {
        u8 c = walk->path.p[--bytes];
        if (c != '[' && c != '.') continue;
        u32 at, label, payload;
        JsonFound found;
        Err err = func__json_find(&walk->doc, SLICE(walk->path.p + 1, bytes - 1), &at, &label,
                                  &found);
        if (err != OK) return err;
        if (found == JSON_FOUND && at + func__jsonb_head(&walk->doc, at, &payload) == walk->at) {
            break;
        }
    }
    *bytes_out = bytes;
    return OK;
}

/* Key of the root: the last step of its path. */
static Err
root_key(FuncCall *call, Walk *walk, Cell *out)
{
    u32 from;
    if (walk->root_bytes == 1) return OK;
    Err err = path_length(walk, &from);
    if (err != OK || from == walk->root_bytes) return err;
    const u8 *p = walk->path.p + from;
    u32 bytes = walk->root_bytes - from;
    if (*p == '[') {
        *out = cell_int(number_int_prefix(SLICE(p + 1, bytes - 1)));
        return OK;
    }
    if (p[1] == '"') return func__result_text(call, p + 2, bytes - 3, out);
    return func__result_text(call, p + 1, bytes - 1, out);
}

static Err
key_value(FuncCall *call, Walk *walk, Cell *out)
{
    if (level_count(walk) == 0) return root_key(call, walk, out);
    if (walk->type == JSONB_OBJECT) return func__json_value(call, &walk->doc, walk->at, out);
    *out = cell_int(top(walk)->key);
    return OK;
}

static Err
full_key(FuncCall *call, Walk *walk, Cell *out)
{
    size_t bytes = walk->path.bytes;
    Err err = level_count(walk) > 0 ? append_step(walk) : OK;
    if (err == OK) err = func__result_text(call, walk->path.p, walk->path.bytes, out);
    walk->path.bytes = bytes;
    return err;
}

static Err
document(FuncCall *call, const Walk *walk, Cell *out)
{
    Slice bytes = buf_slice(&walk->json);
    if (walk->is_text) bytes = func__until_nul(bytes);
    Err err = func__result_text(call, bytes.p, bytes.bytes, out);
    if (err == OK && !walk->is_text) *out = cell_blob(out->u.p, out->bytes);
    return err;
}

static Err
value(TableCall *table, u32 column, Cell *out)
{
    Walk *walk = table->state;
    u32 element = element_at(walk), bytes;
    bool inside = func__jsonb_type(&walk->doc, element) >= JSONB_ARRAY;
    FuncCall call = scalar_call(table, walk->binary && column == COLUMN_VALUE);
    Err err = OK;
    switch (column) {
    case COLUMN_KEY: return key_value(&call, walk, out);
    case COLUMN_VALUE:
        err = func__json_value(&call, &walk->doc, element, out);
        if (inside) out->subtype = JSON_SUBTYPE;
        return err;
    case COLUMN_TYPE: {
        const char *name = func__json_type_name(&walk->doc, element);
        *out = cell_text(name, strlen(name));
        return OK;
    }
    case COLUMN_ATOM: return inside ? OK : func__json_value(&call, &walk->doc, element, out);
    case COLUMN_ID: *out = cell_int(walk->at); return OK;
    case COLUMN_PARENT:
        if (walk->tree && level_count(walk) > 0) *out = cell_int(top(walk)->head);
        return OK;
    case COLUMN_FULLKEY: return full_key(&call, walk, out);
    case COLUMN_PATH:
        err = path_length(walk, &bytes);
        return err != OK ? err : func__result_text(&call, walk->path.p, bytes, out);
    case COLUMN_JSON: return document(&call, walk, out);
    default: return func__result_text(&call, walk->path.p, walk->root_bytes, out);
    }
}

static i64
rowid(const TableCall *call)
{
    return ((const Walk *)call->state)->rowid;
}

static void
end(TableCall *call)
{
    release(call->state);
}

#define EACH(n)                                                                                    \
    {                                                                                              \
        .name = n, .column = COLUMNS, .column_count = COUNT_OF(COLUMNS),                           \
        .hidden_from = COLUMN_JSON, .flags = FUNC_FALLIBLE | FUNC_INNOCUOUS,                       \
        .state_bytes = sizeof(Walk), .start = start, .next = next, .value = value, .rowid = rowid, \
        .end = end                                                                                 \
    }

static const TableFunc FUNCS[] = {
    EACH("json_each"),
    EACH("json_tree"),
    EACH("jsonb_each"),
    EACH("jsonb_tree"),
};

const TableFunc *const func__json_tables = FUNCS;
const u32 func__json_table_count = COUNT_OF(FUNCS);
