/*
 * text16.c -- UTF-16 in native byte order to UTF-8 and back, for the "16" entry points.
 */
#include "capi/capi.h"

void *
capi__to_utf16(const void *text, size_t bytes, int *bytes16_out)
{
    u16 *to = mem_alloc((bytes + 1) * sizeof(u16));
    if (to == NULL) return NULL;
    const u8 *p = text, *end = p + bytes;
    size_t n = 0;
    while (p < end) {
        u32 c = utf8_next(&p, end);
        if (c >= 0x10000) {
            c -= 0x10000;
            to[n++] = (u16)(0xD800 | (c >> 10));
            c = 0xDC00 | (c & 0x3ff);
        }
        to[n++] = (u16)c;
    }
    to[n] = 0;
    *bytes16_out = (int)(n * sizeof(u16));
    return to;
}

/* `bytes16` negative: up to the zero unit. */
char *
capi__from_utf16(const void *text16, int bytes16, size_t *bytes_out)
{
    const u8 *from = text16;
    size_t units = 0;
    *bytes_out = 0;
    if (from == NULL) return NULL;
    if (bytes16 >= 0) {
        units = (size_t)bytes16 / 2;
    } else {
        while (load_u16(from + units * 2) != 0)
            units++;
    }
    u8 *to = mem_alloc(units * 3 + 1);
    if (to == NULL) return NULL;
    size_t n = 0;
    for (size_t i = 0; i < units; i++) {
        u32 c = load_u16(from + i * 2);
        if ((c & 0xFC00) == 0xD800 && i + 1 < units) {
            u32 low = load_u16(from + (i + 1) * 2);
            if ((low & 0xFC00) == 0xDC00) {
                c = 0x10000 + ((c & 0x3ff) << 10) + (low & 0x3ff);
                i++;
            }
        }
        if ((c & 0xFFFFF800u) == 0xD800u) c = 0xFFFD;
        n += utf8_put(to + n, c);
    }
    to[n] = 0;
    *bytes_out = n;
    return (char *)to;
}
