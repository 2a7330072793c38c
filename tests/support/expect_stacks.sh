#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
set -euo pipefail

usage() {
    cat <<'TEXT'
usage: tests/support/expect_stacks.sh PROGRAM TEST WHY FUNCTION...

Runs a test that hangs, and looks at what it says: why it is ended, and for each function a thread that stands in there. Those
threads are others than each other, and none is silent but those of a sanitizer, which block signals.
Exit code: 0 all is said, 1 something is not, 2 wrong options.
TEXT
}

if (($# < 4)); then
    usage
    [[ "${1-}" == --help || "${1-}" == -h ]] && exit 0 || exit 2
fi
program="$1" test="$2" why="$3"
shift 3

code=0
output="$("$program" --gtest_filter="$test" 2>&1)" || code=$?
printf '%s\n' "$output"

wrong() {
    printf 'expect_stacks.sh: %s\n' "$1"
    exit 1
}
((code == 1)) || wrong "the exit code is $code, not 1"
[[ "$output" == *": $why."* ]] || wrong "it does not say why it is ended: $why"

# stacks_with FUNCTION: the threads that stand in there.
stacks_with() {
    awk -v name="$1" '/^thread [0-9]+ / { thread = $2 } index($0, name) && /\(.*\+0x/ && thread { print thread }' <<<"$output" | sort -u
}
for function in "$@"; do
    count="$(stacks_with "$function" | wc -l)"
    ((count > 0)) || wrong "no thread stands in $function"
done
distinct="$(for function in "$@"; do stacks_with "$function" | head -n 1; done | sort -u | wc -l)"
((distinct == $#)) || wrong "$# functions are on the stacks of $distinct threads"
[[ "$output" != *"does not answer"* ]] || wrong "a thread does not answer"
