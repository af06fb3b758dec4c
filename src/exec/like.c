/*
 * like.c -- finding the pieces of a LIKE pattern.
 *
 * A piece is looked for by its first two bytes, sixteen places at a time; where both fit, all of it
 * is compared.  Only ASCII pieces are taken: in UTF-8, well formed or not, an ASCII byte never is
 * part of another character.
 */
#include "exec/like.h"

#ifdef __SSE2__
#include <immintrin.h>
#endif

bool
like_open(Like *like, Slice pattern, bool case_sensitive)
{
    like->pieces = 0;
    like->open_start = pattern.bytes > 0 && pattern.p[0] == '%';
    like->open_end = pattern.bytes > 0 && pattern.p[pattern.bytes - 1] == '%';
    if (pattern.bytes > LIKE_PATTERN_MAX) return false;
    u32 start = 0, to = 0;
    bool folds = false;
    for (u32 i = 0; i <= pattern.bytes; i++) {
        u8 c = i < pattern.bytes ? pattern.p[i] : '%';
        if (c >= 0x80 || c == 0 || c == '_') return false;
        if (c != '%') {
            bool letter = (u8)((c | 0x20) - 'a') < 26;
            if (letter && !case_sensitive) folds = true;
            like->literal[to++] = letter && !case_sensitive ? c | 0x20 : c;
            continue;
        }
        if (to > start) {
            if (like->pieces == LIKE_PIECES_MAX) return false;
            like->piece[like->pieces++] = (LikePiece){(u16)start, (u16)(to - start), folds};
        }
        start = to;
        folds = false;
    }
    return true;
}

static inline bool
byte_fits(u8 want, u8 c, bool folds)
{
    if (want == c) return true;
    return folds && (u8)(want - 'a') < 26 && (c | 0x20) == want;
}

static bool
piece_fits(const u8 *want, u32 bytes, bool folds, const u8 *p)
{
    if (!folds) return memcmp(want, p, bytes) == 0;
    for (u32 i = 0; i < bytes; i++) {
        if (!byte_fits(want[i], p[i], true)) return false;
    }
    return true;
}

#ifdef __SSE2__
/* Lanes where `want` fits. */
static ALWAYS_INLINE u32
lanes_of(__m128i text, u8 want, bool folds)
{
    if (folds && (u8)(want - 'a') < 26) text = _mm_or_si128(text, _mm_set1_epi8(0x20));
    return (u32)_mm_movemask_epi8(_mm_cmpeq_epi8(text, _mm_set1_epi8((char)want)));
}

/* The first of the lanes, which stand for places from `low` (eight or all) and `high` on, where all
   of the piece fits, at `from` or behind it. */
static ALWAYS_INLINE const u8 *
lanes_check(u32 fits, const u8 *want, u32 want_bytes, bool folds, const u8 *low, const u8 *high,
            const u8 *from, const u8 *last)
{
    for (; fits != 0; fits &= fits - 1) {
        u32 lane = (u32)__builtin_ctz(fits);
        const u8 *at = lane < 8 ? low + lane : high + (lane - 8);
        if (at < from || at > last) continue;
        if (piece_fits(want, want_bytes, folds, at)) return at;
    }
    return NULL;
}

/* Eight bytes from `low` on, eight from `high` on. */
static ALWAYS_INLINE __m128i
load_halves(const u8 *low, const u8 *high)
{
    return _mm_unpacklo_epi64(_mm_loadl_epi64((const __m128i *)(const void *)low),
                              _mm_loadl_epi64((const __m128i *)(const void *)high));
}

static ALWAYS_INLINE __m128i
load_sixteen(const u8 *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* The first place of a piece of two bytes or more in text[0..bytes), where bytes >= 9; NULL: none.
   Its first two bytes are compared at sixteen places each time. */
static const u8 *
find_pair(const u8 *want, u32 want_bytes, bool folds, const u8 *text, size_t bytes)
{
    const u8 *end = text + bytes, *last = end - want_bytes;
    if (bytes <= 16) {
        const u8 *high = end - 9;
        u32 fits = lanes_of(load_halves(text, high), want[0], folds) &
                   lanes_of(load_halves(text + 1, high + 1), want[1], folds);
        if (LIKELY(fits == 0)) return NULL;
        return lanes_check(fits, want, want_bytes, folds, text, high, text, last);
    }
    for (const u8 *p = text; p <= last; p += 16) {
        /* The last sixteen may overlap those before. */
        const u8 *from = p > end - 17 ? end - 17 : p;
        u32 fits = lanes_of(load_sixteen(from), want[0], folds) &
                   lanes_of(load_sixteen(from + 1), want[1], folds);
        if (LIKELY(fits == 0)) continue;
        const u8 *at = lanes_check(fits, want, want_bytes, folds, from, from + 8, p, last);
        if (at != NULL) return at;
    }
    return NULL;
}
#endif

static ALWAYS_INLINE const u8 *
find(const u8 *want, u32 want_bytes, bool folds, const u8 *text, const u8 *end)
{
    size_t bytes = (size_t)(end - text);
    if (bytes < want_bytes) return NULL;
#ifdef __SSE2__
    if (bytes >= 9 && want_bytes >= 2) return find_pair(want, want_bytes, folds, text, bytes);
#endif
    if (want_bytes == 1 && !folds) return memchr(text, want[0], bytes);
    for (const u8 *p = text; p <= end - want_bytes; p++) {
        if (byte_fits(want[0], *p, folds) && piece_fits(want, want_bytes, folds, p)) return p;
    }
    return NULL;
}

static bool
matches(const Like *like, const u8 *p, const u8 *end)
{
    if (like->pieces == 0) return like->open_start || p == end;
    u32 first = 0, behind = like->pieces;
    if (!like->open_start) {
        const LikePiece *piece = &like->piece[0];
        if ((size_t)(end - p) < piece->bytes) return false;
        if (!piece_fits(like->literal, piece->bytes, piece->folds, p)) return false;
        p += piece->bytes;
        first = 1;
        if (behind == 1 && !like->open_end) return p == end;
    }
    if (!like->open_end && behind > first) {
        const LikePiece *piece = &like->piece[--behind];
        if ((size_t)(end - p) < piece->bytes) return false;
        end -= piece->bytes;
        if (!piece_fits(like->literal + piece->at, piece->bytes, piece->folds, end)) return false;
    }
    for (u32 i = first; i < behind; i++) {
        const LikePiece *piece = &like->piece[i];
        p = find(like->literal + piece->at, piece->bytes, piece->folds, p, end);
        if (p == NULL) return false;
        p += piece->bytes;
    }
    return true;
}

bool
like_matches(const Like *like, Slice text)
{
    bool match = matches(like, text.p, text.p + text.bytes);
    /* A text ends at a NUL; what was found may lie behind it, or the end have been another. */
    if (LIKELY(!match && like->open_end) || text.bytes == 0) return match;
    const u8 *nul = memchr(text.p, 0, text.bytes);
    return nul == NULL ? match : matches(like, text.p, nul);
}
