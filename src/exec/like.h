/*
 * like.h -- LIKE patterns whose only wildcard is '%', over many texts (private to exec/).
 *
 * Such a pattern is a list of literal pieces: the first stands at the start, the last at the end
 * (unless a '%' is there), those between come in order, each at the first place where it fits.
 * The answers are those of the function like(); patterns of other kinds are left to it.
 */
#pragma once

#include "value/value.h"

#define LIKE_PIECES_MAX  16u
#define LIKE_PATTERN_MAX 256u

typedef struct LikePiece {
    u16 at, bytes; /* In `literal`. */
    bool folds;    /* Has letters, and letters match in both cases. */
} LikePiece;

typedef struct Like {
    u32 pieces;
    bool open_start, open_end; /* A '%' stands there. */
    LikePiece piece[LIKE_PIECES_MAX];
    u8 literal[LIKE_PATTERN_MAX]; /* Pieces one behind the other; small letters where they fold. */
} Like;

/* False: a pattern of another kind (or too long, or not ASCII). */
bool like_open(Like *like, Slice pattern, bool case_sensitive);
bool like_matches(const Like *like, Slice text);
