#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
set -euo pipefail

usage() {
    cat <<'TEXT'
usage: tests/instructions/count.sh HOT_OPERATIONS OPERATION MOST

Counts with callgrind how many instructions one OPERATION takes: what twenty thousand of them take more than ten
thousand. Fails if it is more than MOST. The count is the same in every run, on every machine with this compiler.
Exit code: 0 all is well, 1 too many, 2 wrong options.
TEXT
}

if (($# != 3)); then
    usage
    [[ "${1-}" == --help || "${1-}" == -h ]] && exit 0 || exit 2
fi
program="$1" operation="$2" most="$3"

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT

# instructions COUNT: of a whole run with so many operations.
instructions() {
    valgrind --tool=callgrind --callgrind-out-file="$folder/out" "$program" "$operation" "$1" 2>"$folder/log" >&2 || {
        cat "$folder/log" >&2
        exit 1
    }
    sed -n 's/^\(totals\|summary\): \([0-9]*\).*/\2/p' "$folder/out" | head -n 1
}

few="$(instructions 10000)"
many="$(instructions 20000)"
each=$(((many - few) / 10000))
printf '%s: %d instructions; %d are allowed\n' "$operation" "$each" "$most"
((each <= most))
