/*
 * func_json_path.c -- finding and editing places in JSONB.
 *
 * An edit changes bytes in the middle; then the sizes of all arrays and objects around them are
 * corrected from the inside out, which may move bytes once more where a head grows or shrinks.
 */
#include "func/func_json.h"

/* ---- edits ---- */

/*
 * A new element a few bytes shorter than the old one is written with a longer head, as SQLite does,
 * so that nothing around it moves.  False if no head fits.
 */
static bool
stretch(u8 *p, Slice insert, u32 by)
{
    u32 kind = insert.p[0] >> 4;
    if ((insert.p[0] & 15) <= JSONB_FALSE || kind == 15) return false;
    u32 head = kind == 12 ? 2 : kind == 13 ? 3 : kind == 14 ? 5 : 1, wide = head + by;
    if (wide != 2 && wide != 3 && wide != 5 && wide != 9) return false;
    u32 payload = (u32)insert.bytes - head;
    u32 size = wide == 2 ? 12 : wide == 3 ? 13 : wide == 5 ? 14 : 15;
    memmove(p + wide, insert.p + head, payload);
    p[0] = (u8)(size << 4 | (insert.p[0] & 15));
    for (u32 i = wide - 1; i >= 1; i--) {
        p[i] = (u8)payload;
        payload >>= 8;
    }
    return true;
}

Err
func__json_splice(JsonDoc *doc, u32 at, u32 gone, Slice insert, i64 *delta_out)
{
    Err err = func__json_own(doc);
    /* Room also for heads that grow afterwards. */
    if (err == OK) err = buf_reserve(&doc->own, insert.bytes + 16);
    if (err != OK) return err;
    doc->p = doc->own.p;
    u8 *p = doc->own.p + at;
    if (insert.bytes > 0 && insert.bytes < gone && gone - insert.bytes <= 8 &&
        stretch(p, insert, gone - (u32)insert.bytes)) {
        return OK;
    }
    memmove(p + insert.bytes, p + gone, doc->own.bytes - at - gone);
    if (insert.bytes > 0) memcpy(p, insert.p, insert.bytes);
    doc->own.bytes = doc->own.bytes - gone + insert.bytes;
    doc->bytes = (u32)doc->own.bytes;
    *delta_out += (i64)insert.bytes - (i64)gone;
    return OK;
}

Err
func__json_resize(JsonDoc *doc, u32 at, i64 *delta)
{
    if (*delta == 0) return OK;
    Err err = buf_reserve(&doc->own, 16);
    if (err != OK) return err;
    /* The old size may reach past the end by now: read it as it stands. */
    const u8 *p = doc->own.p + at;
    u32 kind = p[0] >> 4, extra = kind < 12 ? 0 : 1u << (kind - 12);
    u64 payload = kind < 12 ? kind : 0;
    for (u32 i = 1; i <= extra; i++) {
        payload = payload << 8 | p[i];
    }
    *delta += func__jsonb_set_size(&doc->own, at, (u32)((i64)payload + *delta));
    doc->p = doc->own.p;
    doc->bytes = (u32)doc->own.bytes;
    return OK;
}

/* ---- steps of a path ---- */

typedef struct Step {
    bool index;
    Slice key; /* Of an object's member. */
    bool plain;
    bool from_end; /* [#] or [#-n] */
    u64 number;    /* [n], [#-n] */
} Step;

/* .name or ."name" at path[*pos] (behind the point). */
static bool
read_key(Slice path, size_t *pos, Step *step)
{
    size_t i = *pos;
    if (i < path.bytes && path.p[i] == '"') {
        size_t start = ++i;
        while (i < path.bytes && path.p[i] != '"') {
            i += path.p[i] == '\\' && i + 1 < path.bytes ? 2 : 1;
        }
        if (i >= path.bytes) return false;
        step->key = SLICE(path.p + start, i - start);
        step->plain = i == start || memchr(path.p + start, '\\', i - start) == NULL;
        *pos = i + 1;
        return true;
    }
    size_t start = i;
    while (i < path.bytes && path.p[i] != '.' && path.p[i] != '[') {
        i++;
    }
    step->key = SLICE(path.p + start, i - start);
    step->plain = true;
    *pos = i;
    return i > start;
}

static u64
read_number(Slice path, size_t *pos)
{
    u64 number = 0;
    while (*pos < path.bytes && path.p[*pos] >= '0' && path.p[*pos] <= '9') {
        if (number < U32_MAX) number = number * 10 + (u64)(path.p[*pos] - '0');
        ++*pos;
    }
    return number;
}

/* [n], [#], [#-n] at path[*pos] (behind the bracket).  *pos is behind the closing one, unless that
   is missing. */
static bool
read_index(Slice path, size_t *pos, Step *step)
{
    size_t i = *pos;
    step->index = true;
    step->number = read_number(path, &i);
    if (i > *pos && i < path.bytes && path.p[i] == ']') {
        *pos = i + 1;
        return true;
    }
    i = *pos;
    if (i >= path.bytes || path.p[i] != '#') return false;
    step->from_end = true;
    step->number = 0;
    i++;
    if (i + 1 < path.bytes && path.p[i] == '-' && path.p[i + 1] >= '0' && path.p[i + 1] <= '9') {
        i++;
        step->number = read_number(path, &i);
    }
    *pos = i;
    return true;
}

/* ---- looking ---- */

typedef struct Search {
    JsonDoc *doc;
    Slice path;
    size_t pos; /* Behind the steps taken. */
    JsonEdit edit;
    Slice insert;
    u32 at, label;  /* The element reached, and its label if it has one. */
    u32 missing_at; /* Where a missing member would be put. */
    Buf around;     /* u32: the arrays and objects on the way. */
    u32 depth;
} Search;

/* The member with that label in the object at s->at. */
static JsonFound
find_member(Search *s, const Step *step)
{
    const JsonDoc *doc = s->doc;
    u32 payload, head = func__jsonb_head(doc, s->at, &payload), i = s->at + head;
    u32 end = i + payload;
    if (head == 0) return JSON_DAMAGED;
    while (i < end) {
        u32 bytes, value_bytes;
        JsonbType type = func__jsonb_type(doc, i);
        if (!func__jsonb_is_text(type)) return JSON_DAMAGED;
        head = func__jsonb_head(doc, i, &bytes);
        if (head == 0 || i + head + bytes >= end) return JSON_DAMAGED;
        u32 value = i + head + bytes;
        if (func__jsonb_type(doc, value) > JSONB_OBJECT) return JSON_DAMAGED;
        u32 value_head = func__jsonb_head(doc, value, &value_bytes);
        Slice label = SLICE(doc->p + i + head, bytes);
        if (func__json_same_label(step->key, step->plain, label, func__jsonb_is_plain(type))) {
            if (value_head == 0 || value + value_head + value_bytes > end) return JSON_DAMAGED;
            s->label = i;
            s->at = value;
            return JSON_FOUND;
        }
        if (value_head == 0) return JSON_DAMAGED;
        i = value + value_head + value_bytes;
    }
    s->missing_at = i;
    return i > end ? JSON_DAMAGED : JSON_NOT_FOUND;
}

static u64
count_elements(const JsonDoc *doc, u32 at)
{
    u32 payload, head = func__jsonb_head(doc, at, &payload), i = at + head, end = i + payload;
    u64 count = 0;
    for (; head != 0 && i < end; count++) {
        head = func__jsonb_head(doc, i, &payload);
        i += head + payload;
    }
    return count;
}

/* *append_out: the place right behind the last element was meant. */
static JsonFound
find_element(Search *s, const Step *step, bool *append_out)
{
    const JsonDoc *doc = s->doc;
    u64 number = step->number;
    if (step->from_end) {
        u64 count = count_elements(doc, s->at);
        if (number > count) return JSON_NOT_FOUND;
        number = count - number;
    }
    if (step->from_end && (s->pos >= s->path.bytes || s->path.p[s->pos] != ']')) {
        return JSON_BAD_PATH;
    }
    if (step->from_end) s->pos++;
    u32 payload, head = func__jsonb_head(doc, s->at, &payload), i = s->at + head;
    u32 end = i + payload;
    if (head == 0) return JSON_DAMAGED;
    for (; i < end && number > 0; number--) {
        head = func__jsonb_head(doc, i, &payload);
        if (head == 0) return JSON_DAMAGED;
        i += head + payload;
    }
    if (i < end) {
        s->label = 0;
        s->at = i;
        return JSON_FOUND;
    }
    s->missing_at = i;
    *append_out = number == 0;
    return i > end ? JSON_DAMAGED : JSON_NOT_FOUND;
}

/* ---- making what is missing ---- */

/* The rest of the path ends in an array. */
static bool
rest_is_index(const Search *s)
{
    return s->pos < s->path.bytes && s->path.p[s->path.bytes - 1] == ']';
}

/* Read the steps that are left, for which new arrays and objects must be made. */
static JsonFound
read_rest(Search *s, Buf *steps, Err *err)
{
    while (s->pos < s->path.bytes) {
        Step step = {0};
        u8 c = s->path.p[s->pos++];
        if (++s->depth >= JSON_DEPTH_MAX) return JSON_TOO_DEEP;
        if (c == '.') {
            if (!read_key(s->path, &s->pos, &step)) return JSON_BAD_PATH;
            if (s->edit == JSON_ARRAY_INSERT && !rest_is_index(s)) return JSON_NOT_IN_ARRAY;
        } else if (c == '[') {
            if (!read_index(s->path, &s->pos, &step)) return JSON_BAD_PATH;
            if (step.number > 0) return JSON_NOT_FOUND; /* A new array has no such place. */
            if (step.from_end && (s->pos >= s->path.bytes || s->path.p[s->pos++] != ']')) {
                return JSON_BAD_PATH;
            }
        } else {
            return JSON_BAD_PATH;
        }
        *err = buf_append(steps, &step, sizeof(step));
        if (*err != OK) return JSON_DAMAGED;
    }
    return JSON_FOUND;
}

static Err
append_label(Buf *out, const Step *step)
{
    JsonbType type = step->plain ? JSONB_TEXTRAW : JSONB_TEXT5;
    return func__jsonb_append(out, type, (u32)step->key.bytes, step->key.p);
}

/* Bytes of a head before `bytes` of payload. */
static u32
head_bytes(u64 bytes)
{
    return bytes <= 11 ? 1 : bytes <= 0xFF ? 2 : bytes <= 0xFFFF ? 3 : 5;
}

/* What is inserted at the place found missing: the value inside the arrays and objects of the rest
   of the path, outermost first. */
static Err
append_rest(Buf *out, const Step *steps, size_t count, Slice insert)
{
    u64 bytes = insert.bytes;
    Buf sizes = {0}; /* u64: payload of each, from the inside out. */
    Err err = OK;
    for (size_t i = count; i-- > 0 && err == OK;) {
        if (!steps[i].index) bytes += head_bytes(steps[i].key.bytes) + steps[i].key.bytes;
        err = buf_append(&sizes, &bytes, sizeof(bytes));
        bytes += head_bytes(bytes);
    }
    for (size_t i = 0; i < count && err == OK; i++) {
        u64 payload = load_u64(sizes.p + (count - 1 - i) * sizeof(u64));
        err = func__jsonb_append(out, steps[i].index ? JSONB_ARRAY : JSONB_OBJECT, (u32)payload,
                                 NULL);
        if (err == OK && !steps[i].index) err = append_label(out, &steps[i]);
    }
    if (err == OK) err = buf_append(out, insert.p, insert.bytes);
    buf_free(&sizes);
    return err;
}

/* ---- the search ---- */

static Err
resize_around(Search *s, i64 delta)
{
    Err err = OK;
    for (size_t i = s->around.bytes; i > 0 && err == OK && delta != 0; i -= sizeof(u32)) {
        err = func__json_resize(s->doc, load_u32(s->around.p + i - sizeof(u32)), &delta);
    }
    return err;
}

/* The place was missing; make it. */
static Err
insert_missing(Search *s, const Step *step, JsonFound *found_out)
{
    Buf steps = {0}, content = {0};
    Err err = OK;
    u32 container = s->at;
    *found_out = read_rest(s, &steps, &err);
    if (err == OK && *found_out == JSON_FOUND) {
        if (!step->index) err = append_label(&content, step);
        if (err == OK) {
            err = append_rest(&content, (const Step *)(const void *)steps.p,
                              steps.bytes / sizeof(Step), s->insert);
        }
        i64 delta = 0;
        if (err == OK) err = buf_append(&s->around, &container, sizeof(container));
        if (err == OK) {
            err = func__json_splice(s->doc, s->missing_at, 0, buf_slice(&content), &delta);
        }
        if (err == OK) err = resize_around(s, delta);
    }
    buf_free(&steps);
    buf_free(&content);
    return err;
}

/* The end of the path is reached; do there what is to be done. */
static Err
edit_found(Search *s, JsonFound *found_out)
{
    u32 payload, at = s->at, head = func__jsonb_head(s->doc, at, &payload), gone = head + payload;
    Slice insert = s->insert;
    /* Nothing to do; after an insertion `at` need not be the place any more. */
    if (s->edit == JSON_LOOK || s->edit == JSON_INSERT) return OK;
    if (head == 0) {
        *found_out = JSON_DAMAGED;
        return OK;
    }
    switch (s->edit) {
    case JSON_DELETE:
        if (s->label > 0) {
            gone += at - s->label;
            at = s->label;
        }
        insert = SLICE_NONE;
        break;
    case JSON_ARRAY_INSERT:
        if (s->path.p[s->path.bytes - 1] != ']') {
            *found_out = JSON_NOT_IN_ARRAY;
            return OK;
        }
        gone = 0;
        break;
    default: break;
    }
    i64 delta = 0;
    Err err = func__json_splice(s->doc, at, gone, insert, &delta);
    return err != OK ? err : resize_around(s, delta);
}

/* One step; *found_out FOUND: go on from s->at. */
static Err
take_step(Search *s, JsonFound *found_out)
{
    Step step = {0};
    bool append = true;
    u32 container = s->at;
    JsonbType type = func__jsonb_type(s->doc, s->at);
    u8 c = s->path.p[s->pos++];
    *found_out = JSON_BAD_PATH;
    if (c == '.') {
        if (!read_key(s->path, &s->pos, &step)) return OK;
        *found_out = type != JSONB_OBJECT ? JSON_NOT_FOUND : find_member(s, &step);
        append = type == JSONB_OBJECT;
    } else if (c == '[') {
        if (type != JSONB_ARRAY) {
            *found_out = JSON_NOT_FOUND;
            return OK;
        }
        append = false;
        if (!read_index(s->path, &s->pos, &step)) return OK;
        *found_out = find_element(s, &step, &append);
    }
    if (*found_out == JSON_FOUND) {
        if (++s->depth >= JSON_DEPTH_MAX) *found_out = JSON_TOO_DEEP;
        return buf_append(&s->around, &container, sizeof(container));
    }
    if (*found_out != JSON_NOT_FOUND || !append || s->edit < JSON_INSERT) return OK;
    if (s->edit == JSON_ARRAY_INSERT && !step.index && !rest_is_index(s)) {
        *found_out = JSON_NOT_IN_ARRAY;
        return OK;
    }
    Err err = insert_missing(s, &step, found_out);
    /* Done, or not: either way the search ends here. */
    s->pos = s->path.bytes;
    s->edit = JSON_LOOK;
    return err;
}

static Err
search(Search *s, JsonFound *found_out)
{
    Err err = OK;
    *found_out = JSON_FOUND;
    while (err == OK && *found_out == JSON_FOUND && s->pos < s->path.bytes) {
        err = take_step(s, found_out);
    }
    if (err == OK && *found_out == JSON_FOUND) err = edit_found(s, found_out);
    buf_free(&s->around);
    return err;
}

Err
func__json_find(JsonDoc *doc, Slice path, u32 *at_out, u32 *label_out, JsonFound *found_out)
{
    Search s = {.doc = doc, .path = path};
    Err err = search(&s, found_out);
    *at_out = s.at;
    *label_out = s.label;
    return err;
}

Err
func__json_path(JsonDoc *doc, Slice path, JsonEdit edit, Slice insert, u32 *at_out,
                JsonFound *found_out)
{
    Search s = {.doc = doc, .path = path, .edit = edit, .insert = insert};
    Err err = search(&s, found_out);
    *at_out = s.at;
    return err;
}
