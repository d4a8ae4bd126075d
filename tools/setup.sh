#!/bin/sh
# setup.sh [oracle|ci]: installs the Debian packages that the build and the tests need and that are missing, after
# saying which. `oracle` adds what the Python references need, `ci` everything that .ci/run uses.
set -eu

packages="build-essential cmake pkg-config libcjson-dev libutf8proc-dev libssl-dev libcmocka-dev libpcre2-dev liblmdb-dev libedit-dev"
packages="$packages libjpeg62-turbo-dev libpng-dev libwebp-dev libtiff-dev libavformat-dev libavcodec-dev libswscale-dev"
case ${1:-} in
"") ;;
oracle) packages="$packages python3-venv" ;;
ci) packages="$packages python3-venv clang clang-format libclang-rt-14-dev" ;;
*)
    echo "usage: setup.sh [oracle|ci]" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "setup: this is no Debian system; these packages, or what they are called here, are needed: $packages"
    exit 0
fi

missing=
for package in $packages; do
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$status" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

echo "setup: installing these Debian packages, which are missing:$missing"
if [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo >/dev/null; then
    as_root=sudo
else
    echo "setup: run this as root first: apt-get install$missing" >&2
    exit 1
fi
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086
$as_root apt-get update -qq
# shellcheck disable=SC2086
$as_root apt-get install -y -qq --no-install-recommends $missing
