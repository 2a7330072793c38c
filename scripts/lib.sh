# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# What the scripts share. Source it after `set -euo pipefail`:
#
#     source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/lib.sh"
#
#   chime_root                          variable: the top directory of the repository
#   chime_jobs                          variable: how many compilers to run at once
#   heading TEXT                        prints a heading for the step that follows
#   note TEXT                           prints one line of information
#   fail TEXT [EXIT_CODE]               prints "name: TEXT" on standard error and leaves (1)
#   usage_error TEXT                    prints TEXT and the first paragraph of usage(), leaves with 2;
#                                       the script defines usage()
#   need_commands COMMAND=PACKAGE ...   installs the packages of those commands that are missing
#   need_packages PACKAGE ...           installs those Debian packages that are missing
#   need_build_tools                    what every build here needs: g++, cmake, ninja, GoogleTest
#   need_example_libraries              the libraries of others beside chime in examples and demo: libuv, Boost
#   need_test_libraries                 the same for tests: Boost.Context
#   need_clang                          clang-19 with its sanitizer runtimes and the symbolizer
#   configure_and_build PRESET [TARGET ...]   runs the configure preset and builds (all, or those targets)
#   run_to_its_end COMMAND ...                runs a program that ends by itself when it is interrupted, and tells it if we are
#
# Nothing is installed, and apt-get is not even called, when nothing is missing.

chime_root="$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")"
chime_jobs="$(nproc 2>/dev/null || echo 2)"

# A compiler cache is used where there is one; it is not worth installing.
if command -v ccache >/dev/null; then
    export CMAKE_CXX_COMPILER_LAUNCHER="${CMAKE_CXX_COMPILER_LAUNCHER-ccache}"
    # It has to be told that headers compiled in advance are what they seem.
    export CCACHE_SLOPPINESS="${CCACHE_SLOPPINESS-pch_defines,time_macros}"
    # Another checkout of the same source is the same source.
    export CCACHE_BASEDIR="${CCACHE_BASEDIR-$chime_root}"
    export CCACHE_NOHASHDIR="${CCACHE_NOHASHDIR-true}"
fi

# Output is decorated only for people: a log file gets plain lines.
if [[ -t 1 && "${TERM:-dumb}" != dumb ]]; then
    heading_start=$'\e[1m' heading_end=$'\e[0m'
else
    heading_start='' heading_end=''
fi

heading() { printf '\n%s== %s%s\n' "$heading_start" "$1" "$heading_end"; }

note() { printf '   %s\n' "$1"; }

fail() {
    printf '%s: %s\n' "$(basename "$0")" "$1" >&2
    exit "${2:-1}"
}

usage_error() {
    printf '%s: %s\n' "$(basename "$0")" "$1" >&2
    usage | sed -n '/^$/q;p' >&2
    exit 2
}

# Says whether a Debian package is installed.
has_package() {
    [[ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null || true)" == installed ]]
}

# Installs the named packages, as root or through sudo.
install_packages() {
    local as_root=()
    if ! command -v apt-get >/dev/null; then
        fail "these are missing and there is no apt-get to install them; please install: $*"
    fi
    if [[ "$(id -u)" != 0 ]]; then
        command -v sudo >/dev/null || fail "these are missing; please install them as root: apt-get install $*"
        as_root=(sudo)
    fi
    note "installing: $*"
    local log
    log="$(mktemp)"
    # Stale package lists name versions that the mirror no longer has, so they are refreshed first.
    if ! { "${as_root[@]}" apt-get update --quiet=2 &&
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
            apt-get install --yes --quiet=2 --no-install-recommends "$@"; } >"$log" 2>&1 </dev/null; then
        tail -n 20 "$log" >&2
        rm -f "$log"
        fail "could not install: $* (the reason is above); install them by hand and run this again"
    fi
    rm -f "$log"
}

need_packages() {
    local package missing=()
    for package in "$@"; do
        has_package "$package" || missing+=("$package")
    done
    if ((${#missing[@]} > 0)); then install_packages "${missing[@]}"; fi
}

need_commands() {
    local pair missing=()
    for pair in "$@"; do
        command -v "${pair%%=*}" >/dev/null || missing+=("${pair#*=}")
    done
    if ((${#missing[@]} > 0)); then install_packages "${missing[@]}"; fi
}

need_build_tools() {
    need_commands g++=g++ cmake=cmake ninja=ninja-build
    [[ -e /usr/include/gtest/gtest.h ]] || need_packages libgtest-dev
}

need_example_libraries() {
    [[ -e /usr/include/uv.h ]] || need_packages libuv1-dev
    [[ -e /usr/include/boost/asio.hpp ]] || need_packages libboost1.81-dev
}

need_test_libraries() { need_packages libboost-context1.81-dev; }

need_clang() {
    need_commands clang++-19=clang-19 llvm-symbolizer-19=llvm-19
    need_packages libclang-rt-19-dev
}

configure_and_build() {
    local preset="$1" log
    shift
    local targets=()
    if (($# > 0)); then targets=(--target "$@"); fi
    log="$(mktemp)"
    # A configuration is worth reading only when it fails.
    if ! (cd "$chime_root" && cmake --preset "$preset") >"$log" 2>&1; then
        cat "$log" >&2
        rm -f "$log"
        return 1
    fi
    if ! (cd "$chime_root" && cmake --build --preset "$preset" --parallel "$chime_jobs" "${targets[@]}") >"$log" 2>&1; then
        cat "$log" >&2
        rm -f "$log"
        return 1
    fi
    rm -f "$log"
}

# In the background, or a signal that only this script gets would wait until the program has ended. One that both get is told
# twice, which makes no difference. A signal ends `wait`, too; then the program has to be waited for once more.
run_to_its_end() {
    local running code is_told=yes
    "$@" &
    running=$!
    trap 'is_told=yes; kill -INT "$running" 2>/dev/null || true' INT TERM
    while [[ "$is_told" == yes ]]; do
        is_told=no
        code=0
        wait "$running" || code=$?
    done
    trap - INT TERM
    return "$code"
}
