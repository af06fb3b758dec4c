/*
 * recover.h -- fill an empty store from its image and its log.
 */
#pragma once

#include "store/resident/image.h"
#include "store/store_private.h"
#include "store/wal/wal_scan.h"

/* Load the image that `head` describes.  [parks] */
MUST_CHECK Err recover__image(Store *store, RtFile *file, const ImageHead *head, ErrMsg *msg);
/* Replay the log on top.  [parks] */
MUST_CHECK Err recover__log(Store *store, RtDir *dir, const char *name, const ImageHead *head,
                            bool repair, WalScanEnd *end_out, ErrMsg *msg);
