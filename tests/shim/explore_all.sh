#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
set -euo pipefail

usage() {
    cat <<'TEXT'
usage: tests/shim/explore_all.sh PROGRAM [SEED [SECONDS]]

Runs every test of chime_shim_tests, each in a process of its own and as many at once as there are processors, and prints
a line for each that is through, with the schedules that it has tried. What fails is shown at once; the others go on.

CHIME_SEEDS in the environment says how many schedules are drawn for each scenario. SEED says which ones, and in which order
the scenarios come: no two seeds have a schedule in common (0: the first ones, in the order of the files). After SECONDS no
scenario is begun any more; those that have begun come to their end.

One that takes longer than CHIME_TIME_LIMIT seconds (a hundred, and one more for every 50 schedules) hangs: it says where its
threads stand, and has failed.

Of scenarios that are said to be small, all schedules with two preemptions are tried, too, whatever the seed; if there are more
than CHIME_SMALL_SCHEDULES (2000000), that is a failure: then it is not small, or somebody has to allow more. 0: none is tried.

The last line adds it up. Exit code: 0 all held, 1 one did not or was not small, 2 wrong options, 130 stopped with all held so far.
TEXT
}

if (($# == 0)) || [[ "$1" == --help || "$1" == -h ]]; then
    usage
    (($# != 0)) && exit 0 || exit 2
fi
if [[ ! -x "$1" || ! "${2:-0}" =~ ^[0-9]{1,12}$ || ! "${3:-0}" =~ ^[0-9]{1,8}$ ]]; then
    printf 'there is no program %s, or %s is no seed, or %s is no number of seconds\n' "$1" "${2:-0}" "${3:-0}" >&2
    exit 2
fi
program="$1"
seed=$((10#${2:-0}))
export CHIME_SEEDS="${CHIME_SEEDS:-50000}"
export CHIME_SMALL_SCHEDULES="${CHIME_SMALL_SCHEDULES:-2000000}"
export CHIME_FIRST_SEED=$((seed * CHIME_SEEDS + 1))
export CHIME_TIME_LIMIT="${CHIME_TIME_LIMIT:-$((100 + CHIME_SEEDS / 50))}"
seconds="${3:-}"

list_tests() { "$program" --gtest_list_tests | awk '/^[^ ]/ { suite = $1 } /^  / { print suite $1 }'; }
# The same order for the same seed.
in_order() {
    if ((seed == 0)); then cat; else awk -v seed="$seed" 'BEGIN { srand(seed) } { print rand(), $0 }' | sort | cut -d ' ' -f 2; fi
}
mapfile -t names < <(list_tests | in_order)

outputs="$(mktemp -d)"
declare -A running=()  # What each child is about.
through=0
schedules=0
broken=0
unfinished=0
trap 'rm -rf "$outputs"' EXIT
# shellcheck disable=SC2317  # The trap calls it.
stop() {
    kill "${!running[@]}" 2>/dev/null || true
    add_up
    exit "$((broken + unfinished > 0 ? 1 : 130))"
}
trap stop INT TERM

add_up() {
    if ((unfinished > 0)); then
        printf 'NOT ALL: %d scenarios have more small schedules than the %s that were allowed; see above\n' \
            "$unfinished" "$CHIME_SMALL_SCHEDULES"
    fi
    printf '%d of %d scenarios, %d schedules, %d broken, %d s\n' "$through" "${#names[@]}" "$schedules" "$broken" "$SECONDS"
}

# await_one: until one of the children has ended; says what came of it.
await_one() {
    local child code=0 name counted
    wait -n -p child "${!running[@]}" || code=$?
    name="${running[$child]}"
    unset "running[$child]"
    through=$((through + 1))
    counted="$(sed --quiet 's/^\([0-9]*\) executions, .*/\1/p' "$outputs/$name")"
    schedules=$((schedules + ${counted:-0}))
    printf '%4d of %d  %s: %s\n' "$through" "${#names[@]}" "$name" \
        "$( ((code == 0)) && printf 'held%s' "${counted:+, $counted schedules}" || printf 'BROKEN, exit code %d' "$code")"
    if grep --quiet 'there are more small schedules' "$outputs/$name"; then
        unfinished=$((unfinished + 1))
        printf '             NOT ALL: there are more small schedules than %s\n' "$CHIME_SMALL_SCHEDULES"
    fi
    if ((code != 0)); then
        broken=$((broken + 1))
        cat "$outputs/$name"
    fi
    rm "$outputs/$name"
}

most="$(nproc 2>/dev/null || echo 2)"
for name in "${names[@]}"; do
    if ((${#running[@]} >= most)); then await_one; fi
    if [[ -n "$seconds" ]] && ((SECONDS >= 10#$seconds)); then break; fi
    "$program" --gtest_filter="$name" >"$outputs/$name" 2>&1 </dev/null &
    running[$!]="$name"
done
while ((${#running[@]} > 0)); do await_one; done
add_up
exit "$((broken + unfinished > 0 ? 1 : 0))"
