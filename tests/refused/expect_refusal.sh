#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Compiles a file that holds one mistake, and the same file without it.
#
# usage: expect_refusal.sh FILE INCLUDE_DIR COMPILER
#
# With -DMISTAKE the first error must contain what stands in the file behind `says:`; without, there must be none.
set -euo pipefail

file="$1" include_dir="$2" compiler="$3"

fail() {
    printf '%s: %s\n' "$file" "$1" >&2
    exit 1
}

compile() { LC_ALL=C "$compiler" -std=c++20 -fsyntax-only -Wall -Wextra -Werror "-I$include_dir" "$@" "$file" 2>&1; }

says="$(sed --quiet 's,^// says: ,,p' "$file")"
[[ -n "$says" ]] || fail "there is no line '// says: ' with what the compiler is to say"
heard="$(compile)" || fail "it does not compile without its mistake: $heard"
if heard="$(compile -DMISTAKE)"; then fail "it compiles with its mistake"; fi
first="$(grep --max-count=1 'error:' <<<"$heard")"
[[ "$first" == *"$says"* ]] || fail "the first error does not say '$says': $heard"
printf '%s\n' "$first"
