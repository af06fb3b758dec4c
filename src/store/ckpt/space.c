/*
 * space.c -- slots and the lists in which they wait.
 */
#include "store/ckpt/space.h"

void
space_init(Space *space)
{
    *space = (Space){.interval = 1, .leaving = SLOT_NONE, .left = SLOT_NONE, .cut_only = SLOT_NONE};
}

void
space_free(Space *space)
{
    mem_free(space->used);
    mem_free(space->slots);
    *space = (Space){0};
}

Err
space_grown(u32 room_wanted, SpaceArrays *arrays_out)
{
    *arrays_out = (SpaceArrays){0};
    if (room_wanted > U32_MAX - 64) return ERR_FULL;
    u32 room = (room_wanted + 63) / 64 * 64;
    arrays_out->used = MEM_NEW_ARRAY(u64, room / 64);
    arrays_out->slots = MEM_NEW_ARRAY(Slot, room);
    arrays_out->room = room;
    if (arrays_out->used != NULL && arrays_out->slots != NULL) return OK;
    space_arrays_free(arrays_out);
    return ERR_NOMEM;
}

void
space_arrays_free(SpaceArrays *arrays)
{
    mem_free(arrays->used);
    mem_free(arrays->slots);
    *arrays = (SpaceArrays){0};
}

void
space_adopt(Space *space, SpaceArrays *arrays)
{
    if (arrays->room <= space->room) return;
    SpaceArrays old = {space->used, space->slots, space->room};
    if (old.room > 0) {
        memcpy(arrays->used, old.used, old.room / 8);
        memcpy(arrays->slots, old.slots, old.room * sizeof(Slot));
    }
    space->used = arrays->used;
    space->slots = arrays->slots;
    space->room = arrays->room;
    *arrays = old;
}

static bool
is_used(const Space *space, u32 slot)
{
    return (space->used[slot / 64] >> (slot % 64) & 1) != 0;
}

/* Slots of a word that are not to be given out. */
static u64
held_word(const Space *space, u32 word)
{
    u64 held = space->used[word];
    for (const SpacePin *pin = space->pins; pin != NULL; pin = pin->next) {
        if (word < pin->words && !PLANT(159)) held |= pin->used[word];
    }
    return held;
}

u32
space_take(Space *space)
{
    u32 words = space->room / 64;
    for (u32 word = space->hint / 64; word < words; word++) {
        u64 held = held_word(space, word);
        if (held == ~(u64)0) continue;
        u32 slot = word * 64 + (u32)__builtin_ctzll(~held);
        space->used[word] |= (u64)1 << (slot % 64);
        space->hint = slot + 1;
        space->taken++;
        space->end = MAX_OF(space->end, slot + 1);
        return slot;
    }
    space->hint = space->room;
    return SLOT_NONE;
}

bool
space_claim(Space *space, u32 slot)
{
    if (slot >= space->room || is_used(space, slot)) return false;
    space->used[slot / 64] |= (u64)1 << (slot % 64);
    space->taken++;
    space->end = MAX_OF(space->end, slot + 1);
    space->slots[slot].born = 0;
    return true;
}

void
space_give(Space *space, u32 slot)
{
    ASSERT(is_used(space, slot));
    space->used[slot / 64] &= ~((u64)1 << (slot % 64));
    space->taken--;
    space->hint = MIN_OF(space->hint, slot);
}

static void
push(Space *space, u32 *list, u32 slot)
{
    space->slots[slot].next = *list;
    *list = slot;
}

void
space_retire(Space *space, u32 slot, bool both)
{
    if (space->slots[slot].born == space->interval || PLANT(154)) {
        space_give(space, slot);
        return;
    }
    push(space, both ? &space->leaving : &space->left, slot);
}

void
space_cut_only(Space *space, u32 slot)
{
    push(space, &space->cut_only, slot);
}

void
space_born(Space *space, u32 slot, bool at_cut)
{
    space->slots[slot].born = at_cut ? space->interval - 1 : space->interval;
}

static void
give_all(Space *space, u32 *list)
{
    while (*list != SLOT_NONE) {
        u32 slot = *list;
        *list = space->slots[slot].next;
        space_give(space, slot);
    }
}

static void
move_all(Space *space, u32 *from, u32 *to)
{
    while (*from != SLOT_NONE) {
        u32 slot = *from;
        *from = space->slots[slot].next;
        push(space, to, slot);
    }
}

void
space_cut(Space *space)
{
    ASSERT(space->leaving == SLOT_NONE && space->cut_only == SLOT_NONE);
    space->leaving = space->left;
    space->left = SLOT_NONE;
    space->interval++;
}

void
space_completed(Space *space)
{
    give_all(space, &space->leaving);
    /* The next complete one will not name them. */
    move_all(space, &space->cut_only, &space->left);
}

void
space_abandoned(Space *space)
{
    give_all(space, &space->cut_only);
    move_all(space, &space->leaving, &space->left);
}

bool
space_pin(Space *space, SpacePin *pin)
{
    u32 words = space->room / 64;
    if (pin->words < words) return false;
    pin->words = words;
    if (words > 0) memcpy(pin->used, space->used, words * sizeof(u64));
    pin->next = space->pins;
    space->pins = pin;
    return true;
}

void
space_unpin(Space *space, SpacePin *pin)
{
    SpacePin **link = &space->pins;
    while (*link != pin) {
        link = &(*link)->next;
    }
    *link = pin->next;
    space->hint = 0; /* What was passed over may be free. */
}

u32
space_used_end(const Space *space)
{
    u32 end = space->end;
    while (end > 0 && (held_word(space, (end - 1) / 64) >> ((end - 1) % 64) & 1) == 0) {
        end--;
    }
    return end;
}
