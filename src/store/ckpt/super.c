/*
 * super.c -- writing and finding superblocks.
 */
#include "store/ckpt/super.h"

static u64
checksum_of(const Super *super)
{
    return checksum64(super, offsetof(Super, checksum), SUPER_MAGIC);
}

Err
super_write(RtFile *file, Super *super, ErrMsg *msg)
{
    super->magic = SUPER_MAGIC;
    super->version = SUPER_VERSION;
    super->checksum = checksum_of(super);
    for (u32 copy = 0; copy < 2; copy++) {
        u64 at = ((super->sequence & 1) * 2 + copy) * SUPER_COPY_BYTES;
        Err err = rt_file_write(file, at, super, sizeof(*super), msg);
        if (err != OK) return err;
    }
    return OK;
}

static bool
is_sound(const Super *super, u32 copy)
{
    if (super->checksum != checksum_of(super)) return false;
    if ((super->sequence & 1) * 2 != (copy & 2u)) return false; /* Not in its place. */
    u32 page_bytes = super->page_bytes;
    return page_bytes >= 4096 && page_bytes <= 65536 && (page_bytes & (page_bytes - 1)) == 0;
}

Err
super_read(RtFile *file, Super *super_out, bool *found_out, bool *ours_out, ErrMsg *msg)
{
    *found_out = *ours_out = false;
    /* All copies in one call. */
    size_t wanted = 3 * (size_t)SUPER_COPY_BYTES + sizeof(Super), got = 0;
    u8 *bytes = (u8 *)mem_alloc(wanted);
    if (bytes == NULL) return err_set(msg, ERR_NOMEM, "out of memory");
    Err err = rt_file_read(file, 0, bytes, wanted, &got, msg);
    for (u32 copy = 0; copy < 4 && err == OK; copy++) {
        Super super;
        size_t at = copy * (size_t)SUPER_COPY_BYTES;
        if (at + sizeof(super) > got) break;
        memcpy(&super, bytes + at, sizeof(super));
        if (super.magic != SUPER_MAGIC) continue;
        *ours_out = true;
        if (super.version != SUPER_VERSION) {
            err = err_set(msg, ERR_VERSION, "%s: file format %u is not known", rt_file_name(file),
                          super.version);
            break;
        }
        if (!is_sound(&super, copy)) continue;
        if (*found_out && super.sequence <= super_out->sequence) continue;
        *super_out = super;
        *found_out = true;
    }
    mem_free(bytes);
    return err;
}
