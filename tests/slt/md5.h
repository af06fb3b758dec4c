/*
 * md5.h -- the MD5 digest (RFC 1321), which sqllogictest files use to name long results.
 */
#pragma once

#include "base/types.h"

typedef struct Md5 {
    u32 state[4];
    u64 bytes;
    u8 block[64];
} Md5;

void md5_start(Md5 *md5);
void md5_add(Md5 *md5, const void *bytes, size_t count);
/* 32 lower-case digits and a NUL. */
void md5_finish(Md5 *md5, char hex_out[33]);
