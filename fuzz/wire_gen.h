/*
 * wire_gen.h -- well-formed requests, made of choices that the fuzzer's bytes are.
 */
#pragma once

#include "server/hrana/hrana.h"

#define REQUESTS_MAX 40u

/* Requests are made by the writer that makes the server's answers: one generator, two encodings. */
typedef struct Gen {
    Slice choices;
    HranaWriter to;
    bool spoiled;
    u32 step;                     /* Of the batch that is being made. */
    u32 stored, streams, cursors; /* Ids that are in use: most requests name one of them. */
} Gen;

/* A choice below `below`; 0 when all are used up. */
u32 gen_pick(Gen *gen, u32 below);
void gen_text(Gen *gen, const char *name, u32 field, Slice text);
/* A member that does not belong here, or has another type than it should; seldom. */
void gen_spoil(Gen *gen);
void gen_batch(Gen *gen, u32 field);
/* The requests of a pipeline; how many. */
u32 gen_pipeline(Gen *gen);
/* One that closes the stream. */
void gen_close(Gen *gen);
/* A message of a WebSocket, with its request's id, as all of *message. */
void gen_message(Gen *gen, i64 id, Buf *message);
/* A request of Quack; true: the connection ends with it. */
bool gen_quack(Gen *gen, u32 id);
