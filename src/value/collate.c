/*
 * collate.c -- BINARY, NOCASE and RTRIM.
 */
#include "value/collate.h"

const Collation collation_binary = {.kind = COLLATION_BINARY, .name = "BINARY"};
const Collation collation_nocase = {.kind = COLLATION_NOCASE, .name = "NOCASE"};
const Collation collation_rtrim = {.kind = COLLATION_RTRIM, .name = "RTRIM"};

const Collation *
collation_find_builtin(Slice name)
{
    static const Collation *const all[] = {&collation_binary, &collation_nocase, &collation_rtrim};
    for (u32 i = 0; i < COUNT_OF(all); i++) {
        if (slice_equal_nocase(name, SLICE(all[i]->name, strlen(all[i]->name)))) return all[i];
    }
    return NULL;
}

static inline u8
fold(u8 c)
{
    return c >= 'A' && c <= 'Z' ? (u8)(c | 0x20) : c;
}

static int
compare_bytes(size_t a, size_t b)
{
    return (a > b) - (a < b);
}

static int
compare_nocase(Slice a, Slice b)
{
    size_t shared = MIN_OF(a.bytes, b.bytes);
    for (size_t i = 0; i < shared; i++) {
        u8 x = fold(a.p[i]), y = fold(b.p[i]);
        if (x != y) return x < y ? -1 : 1;
        if (x == 0) break;
    }
    return compare_bytes(a.bytes, b.bytes);
}

static Slice
without_spaces(Slice text)
{
    while (text.bytes > 0 && text.p[text.bytes - 1] == ' ') {
        text.bytes--;
    }
    return text;
}

static int
sign_of(int v)
{
    return (v > 0) - (v < 0);
}

int
collation_compare(const Collation *collation, Slice a, Slice b)
{
    CollationKind kind = collation == NULL ? COLLATION_BINARY : collation->kind;
    switch (kind) {
    case COLLATION_BINARY: break;
    case COLLATION_NOCASE: return compare_nocase(a, b);
    case COLLATION_RTRIM:
        a = without_spaces(a);
        b = without_spaces(b);
        break;
    case COLLATION_HOST: return sign_of(collation->compare(collation->arg, a, b));
    }
    return sign_of(slice_compare(a, b));
}
