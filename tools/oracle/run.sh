#!/bin/sh
# run.sh SCRIPT [ARGUMENT...]: runs an oracle script with the python of venv.sh, which installs on first use.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
python=$("$here/venv.sh")
exec "$python" "$@"
