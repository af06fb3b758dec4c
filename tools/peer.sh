#!/bin/sh
# Build the newest SQLite, the engine that Weft is compared with, once: tools/peer.sh DIR makes
# DIR/libsqlite3.so.  Its amalgamation comes with npm's better-sqlite3.
set -eu
peer=$1
mkdir -p "$peer"
[ ! -f "$peer/libsqlite3.so" ] || exit 0
if ! (cd "$peer" && npm pack --silent better-sqlite3@13 >pack.log 2>&1 &&
      tar xzf better-sqlite3-*.tgz package/deps/sqlite3); then
    echo "the peer (SQLite's amalgamation from npm's better-sqlite3) cannot be had: missing" >&2
    exit 1
fi
# The feature macros that SQLite's own configure sets on Linux, and the LIKE of most builds.
cc -O2 -shared -fPIC -DHAVE_FDATASYNC=1 -DHAVE_USLEEP=1 -DHAVE_LOCALTIME_R=1 \
    -DHAVE_GMTIME_R=1 -DHAVE_STRERROR_R=1 -DHAVE_MALLOC_USABLE_SIZE=1 -DHAVE_PREAD=1 \
    -DHAVE_PWRITE=1 -DSQLITE_THREADSAFE=1 -DSQLITE_ENABLE_MATH_FUNCTIONS \
    -DSQLITE_LIKE_DOESNT_MATCH_BLOBS \
    "$peer/package/deps/sqlite3/sqlite3.c" -o "$peer/libsqlite3.new" -lm -lpthread
mv "$peer/libsqlite3.new" "$peer/libsqlite3.so"
