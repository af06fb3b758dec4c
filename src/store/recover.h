/*
 * recover.h -- fill a store that was just opened: checkpoint, undo, redo.
 */
#pragma once

#include "store/store_private.h"
#include "store/wal/wal_scan.h"

/* The trees of the checkpoint, without what was not committed at its cut.  [parks] */
MUST_CHECK Err recover__checkpoint(Store *store, ErrMsg *msg);
/* Replay the log on top.  `repair`: write the unproven tail again.  [parks] */
MUST_CHECK Err recover__log(Store *store, bool repair, WalScanEnd *end_out, ErrMsg *msg);
