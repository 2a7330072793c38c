#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
set -euo pipefail

usage() {
    cat <<'TEXT'
usage: tests/instructions/count.sh HOT_OPERATIONS OPERATION MOST [WITHOUT_HOOKS]

Counts with callgrind how many instructions one OPERATION takes: what twenty thousand of them take more than ten
thousand. Fails if it is more than MOST, or not what the program WITHOUT_HOOKS takes. The count is the same in every run, on
every machine with this compiler.
Exit code: 0 all is well, 1 too many, 2 wrong options.
TEXT
}

if (($# != 3 && $# != 4)); then
    usage
    [[ "${1-}" == --help || "${1-}" == -h ]] && exit 0 || exit 2
fi
program="$1" operation="$2" most="$3"

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT

# instructions PROGRAM COUNT: of a whole run with so many operations.
instructions() {
    valgrind --tool=callgrind --callgrind-out-file="$folder/out" "$1" "$operation" "$2" 2>"$folder/log" >&2 || {
        cat "$folder/log" >&2
        exit 1
    }
    sed -n 's/^\(totals\|summary\): \([0-9]*\).*/\2/p' "$folder/out" | head -n 1
}

# more PROGRAM: what ten thousand more of them take.
more() {
    local few many
    few="$(instructions "$1" 10000)"
    many="$(instructions "$1" 20000)"
    printf '%d\n' "$((many - few))"
}

counted="$(more "$program")"
printf '%s: %d instructions; %d are allowed\n' "$operation" "$((counted / 10000))" "$most"
((counted / 10000 <= most)) || exit 1

if (($# == 4)); then
    bare="$(more "$4")"
    printf '%d for ten thousand of them, %d without hooks for tests\n' "$counted" "$bare"
    # Where the heap begins makes a difference of some dozen; one instruction in every turn of a loop would be 156.
    ((counted - bare < 100 && bare - counted < 100))
fi
