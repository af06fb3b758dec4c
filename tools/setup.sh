#!/bin/sh
# setup.sh -- install the Debian packages that the project needs, if any is missing.
#
# As root, or with sudo that asks no password, it installs through apt-get; otherwise it prints the
# one line to run and ends with status 1.  Does nothing, quickly, when everything is there.
#   tools/setup.sh              the packages of tools/packages.txt
#   tools/setup.sh --catalogue  also fetch apt's package lists if this machine has none
#   tools/setup.sh --ci         also valgrind and LMDB, which only continuous integration and the
#   tools/setup.sh --bench      bench need
set -eu
here=$(cd "$(dirname "$0")" && pwd)

missing=
if command -v dpkg-query >/dev/null 2>&1; then
    wanted=$(sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$here/packages.txt")
    case "${1:-}" in
    --ci | --bench) wanted="$wanted valgrind liblmdb-dev" ;;
    esac
    # shellcheck disable=SC2086
    have=$(dpkg-query -W -f='${db:Status-Abbrev}${Package}\n' $wanted 2>/dev/null | sed -n 's/^ii *//p')
    for package in $wanted; do
        case "
$have
" in
            *"
$package
"*) ;;
            *) missing="$missing $package" ;;
        esac
    done
else
    for tool in gcc meson ninja lemon re2c python3; do
        command -v "$tool" >/dev/null 2>&1 || missing="$missing $tool"
    done
    [ -z "$missing" ] && exit 0
    echo "setup: this is not a Debian system; please install:$missing" >&2
    exit 1
fi

lists=no
if [ "${1:-}" = --catalogue ]; then
    # shellcheck disable=SC2012
    [ -n "$(ls /var/lib/apt/lists 2>/dev/null | grep '_Packages' | head -n 1)" ] || lists=yes
fi
[ -z "$missing" ] && [ "$lists" = no ] && exit 0

if [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    as_root="sudo -n"
else
    echo "setup: please run once, then try again:" >&2
    if [ -n "$missing" ]; then
        echo "    sudo apt-get update && sudo apt-get install -y --no-install-recommends$missing" >&2
    else
        echo "    sudo apt-get update" >&2
    fi
    exit 1
fi

echo "setup: apt-get update" >&2
$as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q </dev/null >&2
if [ -n "$missing" ]; then
    echo "setup: installing$missing" >&2
    # shellcheck disable=SC2086
    $as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -q -y --no-install-recommends $missing </dev/null >&2
fi
