/*
 * func_json_merge.c -- json_patch(): RFC 7396 merge patch on JSONB.
 *
 * The target is edited in place.  A frame stands for an object of the patch that is being merged
 * into an object of the target; frames are a stack of their own.
 */
#include "func/func_json.h"

typedef struct Frame {
    u32 target, start; /* The object in the target, and its first label. */
    i64 bytes;         /* Its payload now. */
    u32 patch_at, patch_end;
    i64 delta; /* What its payload has grown by. */
} Frame;

typedef struct Merge {
    JsonDoc *target;
    const JsonDoc *patch;
    Buf stack;
    JsonFound state;
} Merge;

/* A label and its value. */
typedef struct Member {
    u32 at, value, end;
    Slice label;
    bool plain;
} Member;

static Frame *
top(Merge *merge)
{
    return (Frame *)(void *)(merge->stack.p + merge->stack.bytes) - 1;
}

static bool
read_member(const JsonDoc *doc, u32 at, u32 end, Member *member)
{
    u32 payload, value_payload;
    if (at >= doc->bytes || !func__jsonb_is_text(func__jsonb_type(doc, at))) return false;
    u32 head = func__jsonb_head(doc, at, &payload), value = at + head + payload;
    if (head == 0 || value >= end) return false;
    u32 value_head = func__jsonb_head(doc, value, &value_payload);
    if (value_head == 0 || value + value_head + value_payload > end) return false;
    *member = (Member){.at = at,
                       .value = value,
                       .end = value + value_head + value_payload,
                       .label = SLICE(doc->p + at + head, payload),
                       .plain = func__jsonb_is_plain(func__jsonb_type(doc, at))};
    return true;
}

static void
changed(Frame *frame, i64 delta)
{
    frame->delta += delta;
    frame->bytes += delta;
}

/*
 * Merge the patch's value at `patch` into the target's element at `target`: a value that is no
 * object takes its place at once, an object opens a frame.
 */
static Err
merge_value(Merge *merge, u32 target, u32 patch, i64 *delta_out)
{
    u32 payload, head = func__jsonb_head(merge->patch, patch, &payload);
    u32 old_payload, old_head = func__jsonb_head(merge->target, target, &old_payload);
    *delta_out = 0;
    if (head == 0 || old_head == 0) {
        merge->state = JSON_DAMAGED;
        return OK;
    }
    if (func__jsonb_type(merge->patch, patch) != JSONB_OBJECT) {
        Slice insert = SLICE(merge->patch->p + patch, head + payload);
        return func__json_splice(merge->target, target, old_head + old_payload, insert, delta_out);
    }
    if (merge->stack.bytes / sizeof(Frame) > JSON_DEPTH_MAX) {
        merge->state = JSON_TOO_DEEP;
        return OK;
    }
    Frame frame = {.target = target,
                   .start = target + old_head,
                   .bytes = old_payload,
                   .patch_at = patch + head,
                   .patch_end = patch + head + payload};
    if (func__jsonb_type(merge->target, target) != JSONB_OBJECT) {
        /* It becomes an empty object: the payload goes; the head is corrected at the end. */
        Err err = func__json_splice(merge->target, frame.start, old_payload, SLICE_NONE,
                                    &frame.delta);
        if (err != OK) return err;
        u8 *p = merge->target->own.p + target;
        *p = (u8)((*p & 0xF0) | JSONB_OBJECT);
        frame.bytes += frame.delta;
    }
    return buf_append(&merge->stack, &frame, sizeof(frame));
}

/* A frame is done: correct its size, and tell the frame around it. */
static Err
end_frame(Merge *merge)
{
    Frame frame = *top(merge);
    Err err = func__json_resize(merge->target, frame.target, &frame.delta);
    merge->stack.bytes -= sizeof(Frame);
    if (merge->stack.bytes > 0) changed(top(merge), frame.delta);
    return err;
}

/* The member of the frame's object with the patch's label; *found_out false: at its end. */
static bool
find_target(Merge *merge, const Frame *frame, const Member *patch, Member *found, bool *found_out)
{
    u32 at = frame->start, end = (u32)(frame->start + frame->bytes);
    *found_out = false;
    while (at < end) {
        if (!read_member(merge->target, at, end, found)) return false;
        *found_out = func__json_same_label(patch->label, patch->plain, found->label, found->plain);
        if (*found_out) return true;
        at = found->end;
    }
    found->at = at;
    return true;
}

/* Append the patch's member; an object comes in as null first, and is merged into that. */
static Err
add_member(Merge *merge, const Member *patch, u32 at)
{
    bool object = func__jsonb_type(merge->patch, patch->value) == JSONB_OBJECT;
    const u8 *p = merge->patch->p;
    u32 label_bytes = patch->value - patch->at;
    i64 delta = 0, inner = 0;
    u8 null = JSONB_NULL;
    Err err = func__json_splice(merge->target, at, 0,
                                SLICE(p + patch->at, object ? label_bytes : patch->end - patch->at),
                                &delta);
    if (err == OK && object) {
        err = func__json_splice(merge->target, at + label_bytes, 0, SLICE(&null, 1), &delta);
    }
    if (err != OK) return err;
    changed(top(merge), delta);
    return object ? merge_value(merge, at + label_bytes, patch->value, &inner) : OK;
}

/* One member of the patch. */
static Err
merge_member(Merge *merge)
{
    Frame *frame = top(merge);
    Member patch, target;
    bool found;
    i64 delta = 0;
    if (!read_member(merge->patch, frame->patch_at, frame->patch_end, &patch) ||
        !find_target(merge, frame, &patch, &target, &found)) {
        merge->state = JSON_DAMAGED;
        return OK;
    }
    frame->patch_at = patch.end;
    bool null = func__jsonb_type(merge->patch, patch.value) == JSONB_NULL;
    if (!found) return null ? OK : add_member(merge, &patch, target.at);
    if (null) {
        Err err = func__json_splice(merge->target, target.at, target.end - target.at, SLICE_NONE,
                                    &delta);
        changed(frame, delta);
        return err;
    }
    size_t depth = merge->stack.bytes;
    Err err = merge_value(merge, target.value, patch.value, &delta);
    /* The frame may have moved; a new one reports for itself later. */
    if (err == OK && merge->stack.bytes == depth) changed(top(merge), delta);
    return err;
}

Err
func__json_merge(JsonDoc *target, const JsonDoc *patch, JsonFound *found_out)
{
    Merge merge = {.target = target, .patch = patch, .state = JSON_FOUND};
    i64 delta;
    Err err = func__json_own(target);
    if (err == OK) err = merge_value(&merge, 0, 0, &delta);
    while (err == OK && merge.state == JSON_FOUND && merge.stack.bytes > 0) {
        const Frame *frame = top(&merge);
        err = frame->patch_at < frame->patch_end ? merge_member(&merge) : end_frame(&merge);
    }
    buf_free(&merge.stack);
    *found_out = merge.state;
    return err;
}
