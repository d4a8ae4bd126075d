#!/bin/sh
# demo.sh QVL: asks the demo model about the pictures and the clip in examples/, with that program. Shows each command as it
# can be typed, and how long it took from its start to its end.
set -eu
qvl=$1

# ask ARGUMENT...
ask() {
    printf '\n$ %s ask' "$qvl"
    for argument; do
        case $argument in
        *\ *) printf ' "%s"' "$argument" ;;
        *) printf ' %s' "$argument" ;;
        esac
    done
    echo
    start=$(date +%s%N)
    "$qvl" ask "$@"
    echo "$((($(date +%s%N) - start) / 1000000)) ms"
}

ask --show examples/shapes.png "What do you see?"
ask examples/shapes.png "Where is the blue star?"
ask --show examples/word.png "What is written?"
ask --show examples/before.png examples/after.png "Which picture has more shapes?"
ask --show examples/moves.mp4 "Where does it go?"

printf '\nAsk on: %s chat examples/shapes.png\n' "$qvl"
