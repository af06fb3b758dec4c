#!/bin/sh
# arm64.sh MESON_OPTION... -- build for arm64 with Debian's cross compiler and run under qemu-user.
#
# Needs gcc-aarch64-linux-gnu, qemu-user, and of architecture arm64: libcmocka-dev, libssl-dev,
# libedit-dev, libsqlite3-dev (dpkg --add-architecture arm64).  Says what it could not run: some
# versions of qemu-user (7.2) hang in any dynamically linked program that starts a thread; a program
# of futexes ran when linked statically.
set -eu
cd "$(dirname "$0")/.."
for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
    command -v "$tool" >/dev/null || { echo "arm64: $tool is missing; nothing was run" >&2; exit 1; }
done
mkdir -p build
[ -f build/arm64/build.ninja ] || meson setup build/arm64 "$@" >build/arm64.setup.log 2>&1 ||
    { tail -5 build/arm64.setup.log; exit 1; }
at=build/arm64/tests/unit/rt
nice ninja -C build/arm64 --quiet tests/unit/rt/rt_bench tests/unit/rt/rt_sim_test \
    tests/unit/rt/rt_lock_test tests/unit/rt/rt_fiber_test tests/unit/rt/rt_park_test >/dev/null
run() {
    echo "arm64: $*"
    timeout -s KILL "${LIMIT:-300}" qemu-aarch64 -L /usr/aarch64-linux-gnu "$@"
}
run $at/rt_bench --count switch 100000
run $at/rt_sim_test --seeds 1 "${SEEDS_END:-21}"
cat >build/arm64/thread.c <<'END'
#include <pthread.h>
static void *work(void *arg) { return arg; }
int main(void) { pthread_t t; return pthread_create(&t, 0, work, 0) || pthread_join(t, 0); }
END
aarch64-linux-gnu-gcc build/arm64/thread.c -o build/arm64/thread
if ! timeout -s KILL 10 qemu-aarch64 -L /usr/aarch64-linux-gnu build/arm64/thread; then
    echo "arm64: this qemu cannot start a thread; lock, fiber and parking tests were not run"
    exit 0
fi
for test in lock fiber park; do
    run $at/rt_${test}_test
done
