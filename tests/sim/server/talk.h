/*
 * talk.h -- statements over a Link, whatever its protocol, and the proof that an answer is the
 * answer of its request.
 *
 * Each request carries a tag that no other request of the run has: as id of the message where the
 * protocol has one, and as first value of the statement, whose result repeats it in every row.
 */
#pragma once

#include "link.h"

#define ARGS_MAX  8u
#define COLS_MAX  8u
#define ROWS_MAX  16u
#define LANES     3u /* Streams of a WebSocket; the other protocols have one. */
#define TAG_BYTES 32u
#define STORED    3u /* Ids of stored texts: few, so that they are used again and again. */

typedef struct Ask {
    const char *sql; /* Its first parameter is the tag, as is its first result column. */
    u32 count;       /* Of the other arguments. */
    i64 arg[ARGS_MAX];
    const char *pair; /* A text argument after the others; NULL: none. */
} Ask;

typedef struct Answer {
    bool good;
    char code[48]; /* If not. */
    u32 rows;
    i64 cell[ROWS_MAX][COLS_MAX]; /* Without the tag. */
} Answer;

typedef struct Lane {
    i64 request; /* Its id on a WebSocket; 0: nothing is under way. */
    char tag[TAG_BYTES];
    Answer answer;
    bool is_open;
} Lane;

typedef struct Talk {
    Link link;
    u32 who;
    u64 *serial; /* Outlives a crash of the clients, so that tags stay unique. */
    i64 next_request;
    Lane lane[LANES + 1];       /* The last: requests of the whole socket. */
    bool stays;                 /* HTTP: the stream is to stay open after the request. */
    bool is_calm;               /* No request fails: the next may be sent before it is answered. */
    const char *stored[STORED]; /* What the server keeps of the stream or socket. */
} Talk;

/* False, here and below: the connection is over, and what was under way may have happened. */
MUST_CHECK bool talk_open(Talk *talk, LinkKind kind, const Way *way, u64 patience_ns);
void talk_close(Talk *talk);
/* One statement and its answer. */
MUST_CHECK bool talk_ask(Talk *talk, u32 lane, const Ask *ask, Answer *answer);
/* The same in two steps, so that lanes of a WebSocket interleave. */
MUST_CHECK bool talk_send(Talk *talk, u32 lane, const Ask *ask);
MUST_CHECK bool talk_wait(Talk *talk, u32 lane, Answer *answer);
/* Quack: several statements at once, then all answers. */
MUST_CHECK bool talk_pipeline(Talk *talk, const Ask *asks, u32 count, Answer *answers);
/* Hrana: BEGIN, the statements, COMMIT, or ROLLBACK, in one batch.  *answer: of the COMMIT. */
MUST_CHECK bool talk_batch(Talk *talk, u32 lane, const Ask *asks, u32 count, Answer *answer);
/* Hrana 3: one statement as a cursor. */
MUST_CHECK bool talk_cursor(Talk *talk, u32 lane, const Ask *ask, Answer *answer);
/* Quack: several statements as a text; the answer has no rows. */
MUST_CHECK bool talk_script(Talk *talk, const char *sql, Answer *answer);
/* HTTP: a baton that is no longer, or never was, good must be refused. */
MUST_CHECK bool talk_bad_baton(Talk *talk, const char *baton);
