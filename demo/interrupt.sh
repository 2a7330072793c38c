#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# interrupt.sh PROGRAM: stops the demonstration in the middle and looks at what it says and how it leaves.
set -euo pipefail

# The shell lets what it starts in the background ignore the signal of Ctrl-C; this one must not.
start=(python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])')

output="$(mktemp)"
trap 'rm -f "$output"' EXIT
"${start[@]}" "$1" --seconds 30 --sleepers 20000 --workers 2 >"$output" 2>&1 &
demo=$!
sleep 2
kill -INT "$demo"
code=0
wait "$demo" || code=$?
cat "$output"
if ((code != 130)); then
    printf 'interrupt.sh: the exit code is %d, not 130\n' "$code"
    exit 1
fi
grep --quiet 'stopped by Ctrl-C' "$output"
grep --quiet 'armed = fired + cancelled + pending' "$output"
