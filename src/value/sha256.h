/*
 * sha256.h -- SHA-256 (FIPS 180-4); part of the index key format, so it is ours and stays.
 */
#pragma once

#include "base/base.h"

#define SHA256_BYTES 32

void sha256(const void *p, size_t bytes, u8 out[SHA256_BYTES]);
