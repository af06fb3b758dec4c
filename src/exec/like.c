/*
 * like.c -- finding the pieces of a LIKE pattern.
 *
 * A piece is looked for by its first two bytes, sixteen places at a time; where both fit, the rest
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

/* The first place of the piece in text[0..bytes), where bytes >= 8; NULL: none. */
static const u8 *
find_wide(const u8 *want, u32 want_bytes, bool folds, const u8 *text, size_t bytes)
{
    const u8 *end = text + bytes, *last = end - want_bytes;
    size_t step = bytes >= 16 ? 16 : 8;
    for (const u8 *p = text; p <= last; p += step) {
        __m128i lanes;
        u32 edge; /* Lanes whose next byte is not in the lanes. */
        const u8 *from = p;
        if (step == 16) {
            /* The last sixteen may overlap those before. */
            if (p > end - 16) from = end - 16;
            lanes = _mm_loadu_si128((const __m128i *)(const void *)from);
            edge = 1u << 15;
        } else {
            /* The first eight and the last eight. */
            __m128i low = _mm_loadl_epi64((const __m128i *)(const void *)text);
            __m128i high = _mm_loadl_epi64((const __m128i *)(const void *)(end - 8));
            lanes = _mm_unpacklo_epi64(low, high);
            edge = 1u << 15 | 1u << 7;
        }
        u32 fits = lanes_of(lanes, want[0], folds);
        if (want_bytes > 1 && fits != 0) fits &= lanes_of(lanes, want[1], folds) >> 1 | edge;
        for (; fits != 0; fits &= fits - 1) {
            u32 lane = (u32)__builtin_ctz(fits);
            const u8 *at = from + lane;
            if (step == 8 && lane >= 8) at = end - 16 + lane;
            if (at < p || at > last) continue;
            if (piece_fits(want, want_bytes, folds, at)) return at;
        }
        if (step == 8) break;
    }
    return NULL;
}
#endif

static const u8 *
find(const u8 *want, u32 want_bytes, bool folds, const u8 *text, const u8 *end)
{
    size_t bytes = (size_t)(end - text);
    if (bytes < want_bytes) return NULL;
#ifdef __SSE2__
    if (bytes >= 8) return find_wide(want, want_bytes, folds, text, bytes);
#endif
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
