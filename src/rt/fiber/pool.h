/*
 * pool.h -- private: file requests of fibers, carried out by worker threads or the ring.
 */
#pragma once

#include "rt/io.h"

/* True for requests that may block, and so must not run on a loop. */
bool rt__pool_takes(RtIoOp op);
/* Carry out `io` elsewhere; parks the calling fiber until it is done. */
void rt__pool_run(RtProcess *process, RtIo *io);
