/*
 * toy_store.h -- a small durable store behind a socket, written to be crashed in the simulator.
 *
 * TOY_KEYS counters, changed by requests, each acknowledged when it is durable.  One log file per
 * generation: a snapshot of all counters, then one record a change.  Opening replays the newest
 * whole generation and writes the next, so that nothing is served that exists only in the page
 * cache.  Group commit by a leader; readers are optimistic under a version word.
 */
#pragma once

#include "base/base.h"

#define TOY_KEYS    7
#define TOY_ADDRESS "127.0.0.1:7000"

typedef enum ToyOp { TOY_PUT, TOY_GET, TOY_STOP } ToyOp;
typedef struct ToyRequest {
    u64 op, key, value;
} ToyRequest;
typedef struct ToyReply {
    u64 is_ok, value;
} ToyReply;

/* Main of the server process.  Returns after TOY_STOP, or when the disk failed it. */
void toy_server(void *arg);

/* Planted bugs (WEFT_PLANT, check builds); 1 to 3 are in rt itself. */
#define TOY_PLANT_FIRST            10
#define TOY_PLANT_NO_DIR_SYNC      10
#define TOY_PLANT_TORN_RECORD      11 /* The checksum is not looked at. */
#define TOY_PLANT_ACK_EARLY        12 /* Before the sync. */
#define TOY_PLANT_LOCK_ORDER       13
#define TOY_PLANT_NO_VALIDATE      14 /* An optimistic read is believed. */
#define TOY_PLANT_ONE_WAKE         15 /* The leader wakes one of those it made durable. */
#define TOY_PLANT_SYNC_OVERTAKES   16 /* The sync starts before the write has completed. */
#define TOY_PLANT_RENAME_FIRST     17 /* The new generation gets its name before its sync. */
#define TOY_PLANT_SYNC_RETRY       18 /* A failed sync is tried again. */
#define TOY_PLANT_UNINITIALISED    19
#define TOY_PLANT_ADDRESS_ORDER    20
#define TOY_PLANT_FORGET_UNLOCK    21 /* On an error path. */
#define TOY_PLANT_NO_RECOVERY_SYNC 22 /* The old log is appended to as it was read. */
#define TOY_PLANT_LAST             22
