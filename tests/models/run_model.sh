#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
set -euo pipefail

usage() {
    cat <<'TEXT'
usage: tests/models/run_model.sh MODEL.pml [MUTANT...]

Checks a model with Spin: the model must hold. Then checks its mutants, each of which leaves out one step that the code
takes: every one of them must fail, or the model would not notice that step missing from the code either.

The mutants are those that are given, or all that the model lists in lines that begin with "/* mutants:".
Needs spin and gcc, and is faster with tcc. Exit code: 0 all is as it should be, 1 it is not, 2 wrong options.
TEXT
}

if (($# == 0)) || [[ "$1" == --help || "$1" == -h ]]; then
    usage
    (($# != 0)) && exit 0 || exit 2
fi
if [[ ! -f "$1" ]]; then
    printf 'there is no model %s\n' "$1" >&2
    exit 2
fi
model="$(readlink -f "$1")"
shift
mutants=("$@")
if ((${#mutants[@]} == 0)); then
    read -r -a mutants <<<"$(sed -n 's|^/\* mutants:\(.*\)\*/$|\1|p' "$model" | tr '\n' ' ')"
fi

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# check NAME [DEFINE]: prints one line of the table and answers whether Spin has found an error.
check() {
    local name="$1" started="$SECONDS" errors states depth
    rm -f pan* ./*.trail
    spin ${2:+"-D$2"} -a "$model" >spin.log 2>&1 || {
        cat spin.log >&2
        return 3
    }
    "${compile[@]}" -w -DSAFETY -DCOLLAPSE -DVECTORSZ=2048 -o pan pan.c
    # A search that is cut short, by time or by depth, proves nothing: see below.
    timeout 300 ./pan -m400000 -w22 >pan.log 2>&1 || true
    errors="$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' pan.log | head -n 1)"
    states="$(sed -n 's/ *\([0-9.e+]*\) states, stored.*/\1/p' pan.log | head -n 1)"
    depth="$(grep -c 'max search depth too small' pan.log || true)"
    printf '%-26s %8s errors %12s states %5d s  %s\n' "$name" "${errors:-no}" "${states:-?}" "$((SECONDS - started))" \
        "$(sed -n 's|^pan:1: ||p' pan.log | head -n 1)"
    if [[ -z "$errors" || "$depth" != 0 ]]; then
        tail -n 20 pan.log >&2
        return 3
    fi
    ((errors != 0))
}

wrong=()
compile=(gcc -O2)
code=0
check "$(basename "$model" .pml)" || code=$?
case "$code" in
    0) wrong+=("the model does not hold") ;;
    1) ;;
    *) wrong+=("the model could not be checked") ;;
esac
# A mutant fails soon: most of the time its checker takes longer to be compiled than to run.
compile=(gcc -O0)
if command -v tcc >/dev/null; then compile=(tcc); fi
for mutant in "${mutants[@]}"; do
    code=0
    check "$mutant" "$mutant" || code=$?
    case "$code" in
        0) ;;
        1) wrong+=("$mutant goes unnoticed") ;;
        *) wrong+=("$mutant could not be checked") ;;
    esac
done

if ((${#wrong[@]} > 0)); then
    printf 'wrong: %s\n' "${wrong[@]}" >&2
    exit 1
fi
printf 'the model holds, and all its %d mutants fail\n' "${#mutants[@]}"
