#!/bin/sh
# Makes the Python environment of the oracle scripts, or finds it made; the last line printed is the path of its
# python. It lives in a cache folder of the user, named after the content of requirements.txt, and is complete when
# its stamp file is there: an installation that was interrupted is thrown away and made again.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
requirements=$here/requirements.txt
cache=${QVL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/qvl}
key=$(sha256sum "$requirements" | cut -c1-16)
venv=$cache/oracle-$key
python=$venv/bin/python
stamp=$venv/complete

# The pins are for Debian 12's Python; $QVL_PYTHON names another one.
base=${QVL_PYTHON:-/usr/bin/python3}

make_venv() {
    echo "making the oracle environment in $venv (about 1.1 GB, once)" >&2
    rm -rf "$venv"
    if ! "$base" -m venv "$venv" >&2; then
        echo "venv.sh: $base cannot make environments (Debian: apt install python3-venv)" >&2
        exit 1
    fi
    "$python" -m pip install --quiet --disable-pip-version-check --no-input -r "$requirements" >&2
    "$python" -m pip check >&2
    touch "$stamp"
}

mkdir -p "$cache"
# Tests run side by side: one of them installs, the others wait.
exec 9>"$cache/oracle-$key.lock"
flock 9
if [ ! -e "$stamp" ] || [ ! -x "$python" ]; then
    make_venv
fi
echo "$python"
