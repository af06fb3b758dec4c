#!/bin/sh
# fuzz.sh NAME SECONDS -- build the libFuzzer targets and run NAME_fuzz; without a name list them.
# What it finds stays in build/fuzz/NAME: crash-* files; run the target with one to see it again.
set -eu
cd "$(dirname "$0")/.."
if ! command -v clang >/dev/null 2>&1; then
    echo "fuzz: needs clang: apt-get install clang" >&2
    exit 1
fi
[ -f build/fuzz/build.ninja ] || CC=clang meson setup build/fuzz --buildtype=debugoptimized \
    -Dchecks=true -Dtests=false -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false >/dev/null
ninja -C build/fuzz --quiet
if [ -z "${1:-}" ]; then
    echo "make fuzz T=NAME, where NAME is one of:"
    for file in build/fuzz/fuzz/*_fuzz; do
        name=$(basename "$file" _fuzz)
        echo "    $name"
    done
    exit 0
fi
mkdir -p "build/fuzz/$1"
seeds=
[ ! -d "fuzz/seeds/$1" ] || seeds="fuzz/seeds/$1"
# shellcheck disable=SC2086
exec "build/fuzz/fuzz/$1_fuzz" -max_total_time="${2:-60}" -timeout=10 -rss_limit_mb=2048 \
    -artifact_prefix="build/fuzz/$1/" "build/fuzz/$1" $seeds
