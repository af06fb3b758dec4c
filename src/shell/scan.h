/*
 * scan.h -- where does a SQL statement end?  Fed piece by piece, so a statement of many lines is
 * read once.
 *
 * A statement ends at a semicolon outside literals and comments; inside CREATE TRIGGER only at the
 * one after END.
 */
#pragma once

#include "base/base.h"

typedef struct Scan {
    u8 inside;       /* A quote or comment that is open; 0: none.  See scan.c. */
    u8 last;         /* The byte before, where two make a token. */
    u8 trigger;      /* How far into CREATE [TEMP] TRIGGER: see scan.c. */
    bool has_tokens; /* Since the last end, something but blanks and comments was seen. */
    bool after_semicolon, end_seen;
    u8 word_bytes;
    char word[12]; /* The word being read, lower case; longer ones are no keyword of ours. */
} Scan;

/*
 * Feed `text`; stops after the first byte that ends a statement and returns true with *used_out
 * bytes consumed, otherwise false with all consumed.  Zero-initialised is the start.
 */
bool scan_feed(Scan *scan, Slice text, size_t *used_out);
/* Nothing but blanks and complete comments so far. */
bool scan_is_blank(const Scan *scan);
