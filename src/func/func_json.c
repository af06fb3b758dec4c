/*
 * func_json.c -- the JSON functions of SQL.
 *
 * Each parses its argument into a JsonDoc, looks or edits, and returns text with subtype JSON or,
 * for the jsonb_ ones (BINARY), the document itself.
 */
#include "func/func_json.h"
#include "value/number.h"

static const JsonMode *
mode_of(const FuncCall *call)
{
    return call->def->user_data;
}

static Err
malformed(FuncCall *call)
{
    return err_set(call->msg, ERR_SQL, "malformed JSON");
}

/* ---- arguments and results ---- */

Err
func__json_arg(FuncCall *call, const Cell *cell, JsonDoc *doc, bool *none_out)
{
    Slice text;
    bool ok = false;
    *doc = (JsonDoc){0};
    *none_out = cell->type == CELL_NULL;
    if (*none_out) return OK;
    Err err = func__text_arg(call, cell, &text);
    if (err == OK && cell->type == CELL_BLOB) err = func__json_from_blob(text, doc, &ok);
    if (err != OK || ok) return err;
    /* A blob that is no JSONB is read as text, as SQLite does for old programs' sake. */
    if (text.bytes == 0) return malformed(call);
    err = func__json_parse(text, doc, &ok);
    return err == OK && !ok ? malformed(call) : err;
}

/* Move text or JSON into the result. */
static Err
result_json(FuncCall *call, Buf *text, Cell *result_out)
{
    Err err = OK;
    if (mode_of(call)->binary) {
        JsonDoc doc;
        bool ok;
        err = func__json_parse(buf_slice(text), &doc, &ok);
        if (err == OK && !ok) err = malformed(call); /* A damaged JSONB argument got in. */
        if (err == OK) err = func__result_text(call, doc.p, doc.bytes, result_out);
        func__json_free(&doc);
        result_out->type = CELL_BLOB;
        result_out->flags = 0;
    } else {
        err = func__result_text(call, text->p, text->bytes, result_out);
    }
    result_out->subtype = JSON_SUBTYPE;
    return err;
}

/* The document as the result: JSONB, or text with the subtype. */
static Err
result_doc(FuncCall *call, const JsonDoc *doc, Cell *result_out)
{
    if (mode_of(call)->binary) {
        Err err = func__result_text(call, doc->p, doc->bytes, result_out);
        result_out->type = CELL_BLOB;
        result_out->flags = 0;
        return err;
    }
    Buf text = {0};
    Err err = func__json_render(call, doc, 0, &text);
    if (err == OK) err = func__result_text(call, text.p, text.bytes, result_out);
    result_out->subtype = JSON_SUBTYPE;
    buf_free(&text);
    return err;
}

Err
func__json_path_error(FuncCall *call, JsonFound found, Slice path)
{
    if (found == JSON_DAMAGED) return malformed(call);
    if (found == JSON_TOO_DEEP) return err_set(call->msg, ERR_SQL, "JSON path too deep");
    Buf quoted = {0};
    Cell cell = cell_text(path.p, path.bytes);
    Err err = func_append_quoted(&quoted, &cell);
    if (err == OK) {
        err = err_set(call->msg, ERR_SQL, "%s: %.*s",
                      found == JSON_NOT_IN_ARRAY ? "not an array element" : "bad JSON path",
                      (int)quoted.bytes, (const char *)quoted.p);
    }
    buf_free(&quoted);
    return err;
}

/* An integer's text, hexadecimal or too large ones included. */
static Err
int_value(FuncCall *call, Slice text, Cell *result_out)
{
    bool negative = text.bytes > 0 && text.p[0] == '-';
    Slice digits = negative ? SLICE(text.p + 1, text.bytes - 1) : text;
    if (digits.bytes == 0) return malformed(call);
    bool is_int;
    i64 i;
    f64 r;
    bool hex = digits.bytes > 1 && digits.p[0] == '0' && (digits.p[1] | 0x20) == 'x';
    if (hex) {
        if (!number_literal(digits, &is_int, &i, &r)) return malformed(call);
        /* Sixteen digits are a positive number here. */
        r = (f64)(u64)i;
        *result_out = i < 0 ? cell_real(negative ? -r : r) : cell_int(negative ? -i : i);
        return OK;
    }
    NumberScan scan = number_scan(text);
    if (scan.kind == NUMBER_NONE || !scan.whole) return malformed(call);
    *result_out = scan.kind == NUMBER_INT ? cell_int(scan.i) : cell_real(scan.r);
    return OK;
}

/* Text with escapes as SQL text; escapes that mean nothing are left out. */
static Err
unescaped_value(FuncCall *call, Slice text, Cell *result_out)
{
    u8 *room;
    Err err = func__result_room(call, text.bytes, &room);
    if (err != OK) return err;
    u8 *out = room;
    while (text.bytes > 0) {
        size_t bytes = 1;
        if (*text.p == '\\') {
            u32 character;
            bytes = func__json_unescape(text, &character);
            if (character != JSON_BAD_CHARACTER) out += utf8_put(out, character);
        } else {
            *out++ = *text.p;
        }
        text = SLICE(text.p + bytes, text.bytes - bytes);
    }
    func__result_set(room, (size_t)(out - room), result_out);
    return OK;
}

Err
func__json_value(FuncCall *call, const JsonDoc *doc, u32 at, Cell *result_out)
{
    u32 payload, head = func__jsonb_head(doc, at, &payload);
    if (head == 0) return malformed(call);
    Slice text = SLICE(doc->p + at + head, payload);
    JsonbType type = func__jsonb_type(doc, at);
    NumberScan scan;
    switch (type) {
    case JSONB_NULL:
    case JSONB_TRUE:
    case JSONB_FALSE:
        if (payload != 0) return malformed(call);
        if (type != JSONB_NULL) *result_out = cell_int(type == JSONB_TRUE);
        return OK;
    case JSONB_INT:
    case JSONB_INT5: return int_value(call, text, result_out);
    case JSONB_FLOAT:
    case JSONB_FLOAT5:
        scan = number_scan(text);
        if (scan.kind == NUMBER_NONE || !scan.whole) return malformed(call);
        *result_out = cell_real(scan.r);
        return OK;
    case JSONB_TEXT:
    case JSONB_TEXTRAW: return func__result_text(call, text.p, text.bytes, result_out);
    case JSONB_TEXTJ:
    case JSONB_TEXT5: return unescaped_value(call, text, result_out);
    case JSONB_ARRAY:
    case JSONB_OBJECT: break;
    default: return malformed(call);
    }
    JsonDoc part = {.p = doc->p + at, .bytes = head + payload};
    Err err = result_doc(call, &part, result_out);
    if (mode_of(call)->sql) result_out->subtype = 0;
    return err;
}

/* ---- making JSON ---- */

static Err
run_json_quote(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)argc;
    Buf text = {0};
    Err err = func__json_append_value(call, &text, argv);
    if (err == OK) err = result_json(call, &text, result_out);
    buf_free(&text);
    return err;
}

static Err
run_json_array(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    Buf text = {0};
    Err err = buf_append_byte(&text, '[');
    for (u32 i = 0; i < argc && err == OK; i++) {
        if (i > 0) err = buf_append_byte(&text, ',');
        if (err == OK) err = func__json_append_value(call, &text, &argv[i]);
    }
    if (err == OK) err = buf_append_byte(&text, ']');
    if (err == OK) err = result_json(call, &text, result_out);
    buf_free(&text);
    return err;
}

static Err
append_pair(FuncCall *call, Buf *text, const Cell *pair)
{
    Err err = func__json_append_string(text, SLICE(pair[0].u.p, pair[0].bytes));
    if (err == OK) err = buf_append_byte(text, ':');
    return err != OK ? err : func__json_append_value(call, text, &pair[1]);
}

static Err
run_json_object(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    if (argc % 2 != 0) {
        return err_set(call->msg, ERR_SQL, "json_object() requires an even number of arguments");
    }
    for (u32 i = 0; i < argc; i += 2) {
        if (argv[i].type == CELL_TEXT) continue;
        return err_set(call->msg, ERR_SQL, "json_object() labels must be TEXT");
    }
    Buf text = {0};
    Err err = buf_append_byte(&text, '{');
    for (u32 i = 0; i < argc && err == OK; i += 2) {
        if (i > 0) err = buf_append_byte(&text, ',');
        if (err == OK) err = append_pair(call, &text, &argv[i]);
    }
    if (err == OK) err = buf_append_byte(&text, '}');
    if (err == OK) err = result_json(call, &text, result_out);
    buf_free(&text);
    return err;
}

/* ---- looking ---- */

/* The element that argv[1] leads to, if there is one, else the root.  *found_out false: the result
   is NULL. */
static Err
look(FuncCall *call, JsonDoc *doc, u32 argc, const Cell *argv, u32 *at_out, bool *found_out)
{
    bool none;
    *at_out = 0;
    Err err = func__json_arg(call, &argv[0], doc, &none);
    *found_out = err == OK && !none && (argc < 2 || argv[1].type != CELL_NULL);
    if (!*found_out || argc < 2) return err;
    Slice path;
    JsonFound found = JSON_BAD_PATH;
    err = func__c_text_arg(call, &argv[1], &path);
    if (err == OK && path.bytes > 0 && path.p[0] == '$') {
        err = func__json_path(doc, SLICE(path.p + 1, path.bytes - 1), JSON_LOOK, SLICE_NONE, at_out,
                              &found);
    }
    if (err != OK) return err;
    *found_out = found == JSON_FOUND;
    return found == JSON_FOUND || found == JSON_NOT_FOUND
               ? OK
               : func__json_path_error(call, found, path);
}

static Err
run_json_array_length(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    JsonDoc doc;
    u32 at;
    bool found;
    Err err = look(call, &doc, argc, argv, &at, &found);
    if (err == OK && found) {
        i64 count = 0;
        u32 payload, head = func__jsonb_head(&doc, at, &payload), end = at + head + payload;
        bool array = head != 0 && func__jsonb_type(&doc, at) == JSONB_ARRAY;
        for (u32 i = at + head; array && head != 0 && i < end; count++) {
            head = func__jsonb_head(&doc, i, &payload);
            i += head + payload;
        }
        *result_out = cell_int(count);
    }
    func__json_free(&doc);
    return err;
}

const char *
func__json_type_name(const JsonDoc *doc, u32 at)
{
    static const char *const names[16] = {"null",   "true", "false", "integer", "integer", "real",
                                          "real",   "text", "text",  "text",    "text",    "array",
                                          "object", "",     "",      ""};
    return names[func__jsonb_type(doc, at)];
}

static Err
run_json_type(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    JsonDoc doc;
    u32 at;
    bool found;
    Err err = look(call, &doc, argc, argv, &at, &found);
    if (err == OK && found) {
        const char *name = func__json_type_name(&doc, at);
        *result_out = cell_text(name, strlen(name));
        result_out->flags = CELL_TERMINATED;
    }
    func__json_free(&doc);
    return err;
}

/* A path of -> and ->>, which may be a bare label or number. */
static Err
expand_path(const Cell *cell, Slice path, Buf *out)
{
    bool word = true;
    for (size_t i = 0; i < path.bytes; i++) {
        u8 c = path.p[i];
        word = word &&
               (c == '_' || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z'));
    }
    bool index = path.bytes >= 3 && path.p[0] == '[' && path.p[path.bytes - 1] == ']';
    const char *before = ".\"", *after = "\"";
    if (cell->type == CELL_INT) {
        before = path.p[0] == '-' ? "[#" : "[";
        after = "]";
    } else if (word) {
        before = ".";
        after = "";
    } else if (index) {
        before = after = "";
    }
    Err err = buf_append_text(out, before);
    if (err == OK) err = buf_append(out, path.p, path.bytes);
    return err != OK ? err : buf_append_text(out, after);
}

/* Where one path argument leads. */
static Err
follow(FuncCall *call, JsonDoc *doc, const Cell *cell, Slice path, u32 *at_out,
       JsonFound *found_out)
{
    if (path.bytes > 0 && path.p[0] == '$') {
        return func__json_path(doc, SLICE(path.p + 1, path.bytes - 1), JSON_LOOK, SLICE_NONE,
                               at_out, found_out);
    }
    *found_out = JSON_BAD_PATH;
    if (!mode_of(call)->json && !mode_of(call)->sql) return OK;
    Buf expanded = {0};
    Err err = expand_path(cell, path, &expanded);
    if (err == OK) {
        err = func__json_path(doc, buf_slice(&expanded), JSON_LOOK, SLICE_NONE, at_out, found_out);
    }
    buf_free(&expanded);
    return err;
}

static Err
extract_one(FuncCall *call, JsonDoc *doc, const Cell *cell, Cell *result_out)
{
    Slice path;
    u32 at;
    JsonFound found;
    if (cell->type == CELL_NULL) return OK;
    Err err = func__c_text_arg(call, cell, &path);
    if (err == OK) err = follow(call, doc, cell, path, &at, &found);
    if (err != OK || found == JSON_NOT_FOUND) return err;
    if (found != JSON_FOUND) return func__json_path_error(call, found, path);
    if (!mode_of(call)->json) return func__json_value(call, doc, at, result_out);
    Buf text = {0};
    err = func__json_render(call, doc, at, &text);
    if (err == OK) err = func__result_text(call, text.p, text.bytes, result_out);
    result_out->subtype = JSON_SUBTYPE;
    buf_free(&text);
    return err;
}

/* Several paths: an array of what they lead to.  *none_out: a path is NULL. */
static Err
extract_many(FuncCall *call, JsonDoc *doc, u32 count, const Cell *cells, Buf *text, bool *none_out)
{
    Err err = buf_append_byte(text, '[');
    for (u32 i = 0; i < count && err == OK; i++) {
        Slice path;
        u32 at;
        JsonFound found;
        *none_out = cells[i].type == CELL_NULL;
        if (*none_out) return OK;
        err = func__c_text_arg(call, &cells[i], &path);
        if (err == OK) err = follow(call, doc, &cells[i], path, &at, &found);
        if (err == OK && found != JSON_FOUND && found != JSON_NOT_FOUND) {
            err = func__json_path_error(call, found, path);
        }
        if (err == OK && i > 0) err = buf_append_byte(text, ',');
        if (err != OK) break;
        err = found == JSON_FOUND ? func__json_render(call, doc, at, text)
                                  : buf_append_text(text, "null");
    }
    return err != OK ? err : buf_append_byte(text, ']');
}

static Err
run_json_extract(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    JsonDoc doc;
    bool none;
    if (argc < 2) return OK;
    Err err = func__json_arg(call, &argv[0], &doc, &none);
    if (err == OK && !none && argc == 2) {
        err = extract_one(call, &doc, &argv[1], result_out);
    } else if (err == OK && !none) {
        Buf text = {0};
        err = extract_many(call, &doc, argc - 1, argv + 1, &text, &none);
        if (err == OK && !none) err = result_json(call, &text, result_out);
        if (mode_of(call)->binary) result_out->subtype = 0;
        buf_free(&text);
    }
    func__json_free(&doc);
    return err;
}

static Err
run_json_pretty(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    JsonDoc doc;
    bool none;
    Slice indent = SLICE_LITERAL("    ");
    Err err = func__json_arg(call, &argv[0], &doc, &none);
    if (err == OK && argc == 2 && argv[1].type != CELL_NULL) {
        err = func__c_text_arg(call, &argv[1], &indent);
    }
    Buf text = {0};
    if (err == OK && !none) err = func__json_render_pretty(call, &doc, indent, &text);
    if (err == OK && !none) err = func__result_text(call, text.p, text.bytes, result_out);
    buf_free(&text);
    func__json_free(&doc);
    return err;
}

/* ---- judging ---- */

enum { VALID_JSON = 1, VALID_JSON5 = 2, VALID_JSONB = 4, VALID_JSONB_STRICT = 8 };

static Err
run_json_valid(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    i64 flags = argc == 2 ? cell_to_int(&argv[1]) : VALID_JSON;
    if (flags < 1 || flags > 15) {
        return err_set(call->msg, ERR_SQL,
                       "FLAGS parameter to json_valid() must be between 1 and 15");
    }
    if (argv[0].type == CELL_NULL) return OK;
    Slice text;
    JsonDoc doc = {0};
    bool binary = false, ok = false;
    Err err = func__text_arg(call, &argv[0], &text);
    if (err == OK && argv[0].type == CELL_BLOB) err = func__json_from_blob(text, &doc, &binary);
    if (err != OK) return err;
    if (binary) {
        u32 mistake = 0;
        ok = flags & VALID_JSONB;
        if (!ok && (flags & VALID_JSONB_STRICT)) {
            err = func__jsonb_check(&doc, &mistake);
            ok = mistake == 0;
        }
    } else if ((flags & (VALID_JSON | VALID_JSON5)) && text.bytes > 0) {
        err = func__json_parse(text, &doc, &ok);
        ok = ok && ((flags & VALID_JSON5) || !doc.json5);
        func__json_free(&doc);
    }
    if (err == OK) *result_out = cell_int(ok);
    return err;
}

static Err
run_json_error_position(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)argc;
    if (argv->type == CELL_NULL) return OK;
    Slice text;
    JsonDoc doc = {0};
    bool ok = false;
    u32 mistake = 0;
    Err err = func__text_arg(call, argv, &text);
    if (err == OK && argv->type == CELL_BLOB) err = func__json_from_blob(text, &doc, &ok);
    if (err != OK) return err;
    if (ok) {
        err = func__jsonb_check(&doc, &mistake);
        if (err == OK) *result_out = cell_int(mistake);
        return err;
    }
    err = func__json_parse(text, &doc, &ok);
    if (err != OK) return err;
    i64 position = 0;
    if (!ok) {
        position = 1 + (i64)utf8_count(text.p, MIN_OF(doc.error_at, text.bytes));
    }
    func__json_free(&doc);
    *result_out = cell_int(position);
    return OK;
}

/* ---- editing ---- */

/* An SQL value as JSONB, appended to `out`. */
static Err
append_element(FuncCall *call, const Cell *cell, Buf *out)
{
    char number[NUMBER_TEXT_BYTES];
    JsonDoc doc;
    Slice bytes;
    bool ok;
    Err err;
    switch (cell->type) {
    case CELL_NULL: return buf_append_byte(out, JSONB_NULL);
    case CELL_INT:
        return func__jsonb_append(out, JSONB_INT, (u32)number_put_int(number, cell->u.i), number);
    case CELL_REAL:
        if (cell->u.r - cell->u.r != 0.0) {
            bool positive = cell->u.r > 0;
            return func__jsonb_append(out, JSONB_FLOAT, positive ? 5 : 6,
                                      positive ? "9e999" : "-9e999");
        }
        return func__jsonb_append(out, JSONB_FLOAT, (u32)number_put_real(number, cell->u.r),
                                  number);
    case CELL_TEXT:
        if (cell->subtype != JSON_SUBTYPE) {
            return func__jsonb_append(out, JSONB_TEXTRAW, cell->bytes,
                                      cell->bytes == 0 ? (const u8 *)"" : cell->u.p);
        }
        err = func__json_parse(SLICE(cell->u.p, cell->bytes), &doc, &ok);
        if (err == OK) err = ok ? buf_append(out, doc.p, doc.bytes) : malformed(call);
        func__json_free(&doc);
        return err;
    default: break;
    }
    err = cell_bytes(cell, call->arena, &bytes);
    if (err == OK) err = func__json_from_blob(bytes, &doc, &ok);
    if (err != OK) return err;
    if (!ok) return err_set(call->msg, ERR_SQL, "JSON cannot hold BLOB values");
    return buf_append(out, bytes.p, bytes.bytes);
}

/* One pair of path and value. */
static Err
edit_pair(FuncCall *call, JsonDoc *doc, const Cell *pair)
{
    JsonEdit edit = mode_of(call)->edit;
    Slice path;
    if (pair[0].type == CELL_NULL) return OK;
    Err err = func__c_text_arg(call, &pair[0], &path);
    if (err != OK) return err;
    if (path.bytes == 0 || path.p[0] != '$')
        return func__json_path_error(call, JSON_BAD_PATH, path);
    Buf element = {0};
    JsonFound found = JSON_FOUND;
    u32 at;
    i64 delta = 0;
    err = append_element(call, &pair[1], &element);
    if (err == OK && path.bytes > 1) {
        err = func__json_path(doc, SLICE(path.p + 1, path.bytes - 1), edit, buf_slice(&element),
                              &at, &found);
    } else if (err == OK && (edit == JSON_REPLACE || edit == JSON_SET)) {
        err = func__json_splice(doc, 0, doc->bytes, buf_slice(&element), &delta);
    }
    buf_free(&element);
    if (err != OK || found == JSON_FOUND || found == JSON_NOT_FOUND) return err;
    return func__json_path_error(call, found, path);
}

static Err
run_json_edit(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    if (argc == 0) return OK;
    if (argc % 2 == 0) {
        return err_set(call->msg, ERR_SQL, "json_%s() needs an odd number of arguments",
                       mode_of(call)->name);
    }
    JsonDoc doc;
    bool none;
    Err err = func__json_arg(call, &argv[0], &doc, &none);
    for (u32 i = 1; i < argc && err == OK && !none; i += 2) {
        err = edit_pair(call, &doc, &argv[i]);
    }
    if (err == OK && !none) err = result_doc(call, &doc, result_out);
    func__json_free(&doc);
    return err;
}

/* json(x) is json_remove(x) without paths. */
static Err
run_json_remove(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    if (argc == 0) return OK;
    JsonDoc doc;
    bool none;
    Err err = func__json_arg(call, &argv[0], &doc, &none);
    for (u32 i = 1; i < argc && err == OK && !none; i++) {
        Slice path;
        u32 at;
        JsonFound found = JSON_BAD_PATH;
        none = argv[i].type == CELL_NULL;
        if (none) break;
        err = func__c_text_arg(call, &argv[i], &path);
        none = err == OK && path.bytes == 1 && path.p[0] == '$'; /* Nothing is left. */
        if (err != OK || none) break;
        if (path.bytes > 0 && path.p[0] == '$') {
            err = func__json_path(&doc, SLICE(path.p + 1, path.bytes - 1), JSON_DELETE, SLICE_NONE,
                                  &at, &found);
        }
        if (err == OK && found != JSON_FOUND && found != JSON_NOT_FOUND) {
            err = func__json_path_error(call, found, path);
        }
    }
    if (err == OK && !none) err = result_doc(call, &doc, result_out);
    func__json_free(&doc);
    return err;
}

static Err
run_json_patch(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)argc;
    JsonDoc target, patch = {0};
    bool none;
    JsonFound found = JSON_FOUND;
    Err err = func__json_arg(call, &argv[0], &target, &none);
    if (err == OK && !none) err = func__json_arg(call, &argv[1], &patch, &none);
    if (err == OK && !none) err = func__json_merge(&target, &patch, &found);
    if (err == OK && found == JSON_DAMAGED) err = malformed(call);
    if (err == OK && found == JSON_TOO_DEEP) {
        err = err_set(call->msg, ERR_SQL, "JSON nested too deep");
    }
    if (err == OK && !none) err = result_doc(call, &target, result_out);
    func__json_free(&target);
    func__json_free(&patch);
    return err;
}

#define TEXT_MODE(...)   ((void *)&(JsonMode){__VA_ARGS__})
#define BINARY_MODE(...) ((void *)&(JsonMode){.binary = true, __VA_ARGS__})
#define FLAGS            (FUNC_INNOCUOUS | FUNC_FALLIBLE | FUNC_RESULT_SUBTYPE)
#define JSON(n, low, high, f, fn, mode)                                                          \
    {                                                                                            \
        .name = n, .argc_min = low, .argc_max = high, .kind = FUNC_SCALAR, .flags = FLAGS | (f), \
        .scalar = fn, .user_data = mode                                                          \
    }
/* The text and the binary form of a function. */
#define BOTH(n, low, high, f, fn, ...)                        \
    JSON("json" n, low, high, f, fn, TEXT_MODE(__VA_ARGS__)), \
        JSON("jsonb" n, low, high, f, fn, BINARY_MODE(__VA_ARGS__))

static const FuncDef DEFS[] = {
    BOTH("", 1, 1, 0, run_json_remove, .edit = JSON_DELETE),
    BOTH("_array", 0, -1, FUNC_SUBTYPE, run_json_array, .edit = JSON_LOOK),
    BOTH("_object", 0, -1, FUNC_SUBTYPE, run_json_object, .edit = JSON_LOOK),
    BOTH("_extract", 0, -1, 0, run_json_extract, .edit = JSON_LOOK),
    BOTH("_insert", 0, -1, FUNC_SUBTYPE, run_json_edit, .edit = JSON_INSERT, .name = "insert"),
    BOTH("_replace", 0, -1, FUNC_SUBTYPE, run_json_edit, .edit = JSON_REPLACE, .name = "replace"),
    BOTH("_set", 0, -1, FUNC_SUBTYPE, run_json_edit, .edit = JSON_SET, .name = "set"),
    BOTH("_array_insert", 0, -1, FUNC_SUBTYPE, run_json_edit, .edit = JSON_ARRAY_INSERT,
         .name = "array_insert"),
    BOTH("_remove", 0, -1, 0, run_json_remove, .edit = JSON_DELETE),
    BOTH("_patch", 2, 2, 0, run_json_patch, .edit = JSON_LOOK),
    JSON("->", 2, 2, 0, run_json_extract, TEXT_MODE(.json = true)),
    JSON("->>", 2, 2, 0, run_json_extract, TEXT_MODE(.sql = true)),
    JSON("json_array_length", 1, 1, 0, run_json_array_length, TEXT_MODE(.edit = JSON_LOOK)),
    JSON("json_array_length", 2, 2, 0, run_json_array_length, TEXT_MODE(.edit = JSON_LOOK)),
    JSON("json_error_position", 1, 1, 0, run_json_error_position, TEXT_MODE(.edit = JSON_LOOK)),
    JSON("json_pretty", 1, 1, 0, run_json_pretty, TEXT_MODE(.edit = JSON_LOOK)),
    JSON("json_pretty", 2, 2, 0, run_json_pretty, TEXT_MODE(.edit = JSON_LOOK)),
    JSON("json_quote", 1, 1, FUNC_SUBTYPE, run_json_quote, TEXT_MODE(.edit = JSON_LOOK)),
    JSON("json_type", 1, 1, 0, run_json_type, TEXT_MODE(.edit = JSON_LOOK)),
    JSON("json_type", 2, 2, 0, run_json_type, TEXT_MODE(.edit = JSON_LOOK)),
    JSON("json_valid", 1, 1, 0, run_json_valid, TEXT_MODE(.edit = JSON_LOOK)),
    JSON("json_valid", 2, 2, 0, run_json_valid, TEXT_MODE(.edit = JSON_LOOK)),
};

FUNC_FAMILY(func__json, DEFS);
