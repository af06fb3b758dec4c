/*
 * func_json_group.c -- json_group_array() and json_group_object().
 *
 * The members stand in `text`, each with a comma behind it; `sizes` has their lengths in order, so
 * that a moving frame can drop the first.  A row whose name is NULL has length 0.
 */
#include "func/func_json.h"

typedef struct Group {
    Buf text;
    size_t start; /* Bytes of `text` that inverse took away. */
    Buf sizes;    /* u32 */
    size_t gone;  /* Bytes of `sizes` that inverse took away. */
} Group;

static bool
is_binary(const FuncCall *call)
{
    return call->def->name[4] == 'b'; /* jsonb_... */
}

static Err
end_member(FuncCall *call, Group *group, size_t before, Err err)
{
    if (err == OK) err = func__check_length(call, group->text.bytes - group->start);
    if (err == OK && group->text.bytes > before) err = buf_append_byte(&group->text, ',');
    u32 bytes = (u32)(group->text.bytes - before);
    if (err == OK) err = buf_append(&group->sizes, &bytes, sizeof(bytes));
    return err;
}

static Err
step_array(FuncCall *call, u32 argc, const Cell *argv)
{
    (void)argc;
    Group *group = call->state;
    size_t before = group->text.bytes;
    return end_member(call, group, before, func__json_append_value(call, &group->text, argv));
}

static Err
step_object(FuncCall *call, u32 argc, const Cell *argv)
{
    (void)argc;
    Group *group = call->state;
    size_t before = group->text.bytes;
    Err err = OK;
    if (argv[0].type != CELL_NULL) {
        Slice name;
        err = func__c_text_arg(call, &argv[0], &name);
        if (err == OK) err = func__json_append_string(&group->text, name);
        if (err == OK) err = buf_append_byte(&group->text, ':');
        if (err == OK) err = func__json_append_value(call, &group->text, &argv[1]);
    }
    return end_member(call, group, before, err);
}

static Err
inverse_group(FuncCall *call, u32 argc, const Cell *argv)
{
    (void)argc;
    (void)argv;
    Group *group = call->state;
    if (group->gone >= group->sizes.bytes) return OK;
    group->start += load_u32(group->sizes.p + group->gone);
    group->gone += sizeof(u32);
    if (group->start > 64 && group->start > group->text.bytes / 2) {
        memmove(group->text.p, group->text.p + group->start, group->text.bytes - group->start);
        group->text.bytes -= group->start;
        group->start = 0;
    }
    if (group->gone > 64 && group->gone > group->sizes.bytes / 2) {
        memmove(group->sizes.p, group->sizes.p + group->gone, group->sizes.bytes - group->gone);
        group->sizes.bytes -= group->gone;
        group->gone = 0;
    }
    return OK;
}

static Err
value_group(FuncCall *call, bool object, Cell *result_out)
{
    const Group *group = call->state;
    size_t bytes = group->text.bytes - group->start;
    if (bytes > 0) bytes--; /* The last comma. */
    u8 *room;
    Err err = func__result_room(call, (u64)bytes + 2, &room);
    if (err != OK) return err;
    room[0] = object ? '{' : '[';
    if (bytes > 0) memcpy(room + 1, group->text.p + group->start, bytes);
    room[bytes + 1] = object ? '}' : ']';
    func__result_set(room, bytes + 2, result_out);
    result_out->subtype = JSON_SUBTYPE;
    if (!is_binary(call)) return OK;

    JsonDoc doc;
    bool ok;
    err = func__json_parse(SLICE(room, bytes + 2), &doc, &ok);
    if (err == OK && !ok) err = err_set(call->msg, ERR_SQL, "malformed JSON");
    if (err == OK) err = func__result_text(call, doc.p, doc.bytes, result_out);
    func__json_free(&doc);
    result_out->type = CELL_BLOB;
    result_out->flags = 0;
    return err;
}

static Err
value_array(FuncCall *call, Cell *result_out)
{
    return value_group(call, false, result_out);
}
static Err
value_object(FuncCall *call, Cell *result_out)
{
    return value_group(call, true, result_out);
}

static void
free_group(FuncCall *call)
{
    Group *group = call->state;
    buf_free(&group->text);
    buf_free(&group->sizes);
}

#define GROUP(n, argc, kind_name)                                                         \
    {                                                                                     \
        .name = n, .argc_min = argc, .argc_max = argc, .kind = FUNC_AGGREGATE,            \
        .flags = FUNC_INNOCUOUS | FUNC_FALLIBLE | FUNC_ORDERED | FUNC_SUBTYPE |           \
                 FUNC_RESULT_SUBTYPE,                                                     \
        .state_bytes = sizeof(Group), .step = step_##kind_name, .inverse = inverse_group, \
        .value = value_##kind_name, .state_free = free_group                              \
    }

static const FuncDef DEFS[] = {
    GROUP("json_group_array", 1, array),
    GROUP("jsonb_group_array", 1, array),
    GROUP("json_group_object", 2, object),
    GROUP("jsonb_group_object", 2, object),
};

FUNC_FAMILY(func__json_group, DEFS);
