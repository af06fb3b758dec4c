/*
 * base64.h -- RFC 4648 base64, the standard alphabet.
 */
#pragma once

#include "base/base.h"

/* Append the encoding of `bytes`; `pad` adds the '=' at the end. */
MUST_CHECK Err base64_encode(Slice bytes, bool pad, Buf *out);
/*
 * Append what `text` encodes.  With or without padding, also the URL-safe letters; no blanks.
 * Errors: ERR_SQL (not base64; *out is as before), ERR_NOMEM.
 */
MUST_CHECK Err base64_decode(Slice text, Buf *out);
