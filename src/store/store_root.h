/*
 * store_root.h -- the stores that are open in one process.
 */
#pragma once

#include "store/store_private.h"

typedef struct StoreRoot {
    RtMutex mutex; /* Guards the list and the reference counts; held through open and close. */
    Store *stores;
    RtPtr spare; /* PoolFile, retired; NULL: none. */
} StoreRoot;

/* The root of the process; NULL: out of memory. */
StoreRoot *store__root(void);
