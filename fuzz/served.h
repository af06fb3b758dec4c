/*
 * served.h -- a server in the fuzzer's own process, and one exchange with it.
 */
#pragma once

#include "base/base.h"

/* A connection of its own: send everything, close that side, and read to the end into *answer
   (NULL: thrown away).  False: the connection was reset.  A server that does not answer ends the
   run. */
bool served_exchange(Slice request, Buf *answer);
