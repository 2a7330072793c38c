#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Uses chime as a stranger would: builds it from the source tree, puts it somewhere, and builds and runs a program with it.
#
# usage: check_package.sh WAY static|shared SOURCE_DIR WORK_DIR COMPILER
#
#   WAY  find_package      installed, found by CMake, after the installed tree was moved
#        pkg_config        installed, found by pkg-config, compiled by hand
#        add_subdirectory  embedded
#        fetch_content     embedded through FetchContent, without a download
#        no_rtti           embedded, everything compiled with -fno-rtti
#        symbols           the shared library offers the API and nothing else
#        plain             plain `cmake -B` configures a release of the library alone
set -euo pipefail

way="$1" kind="$2" source_dir="$3" work_dir="$4" compiler="$5"
tests_dir="$source_dir/tests/packaging"
shared=OFF
if [[ "$kind" == shared ]]; then shared=ON; fi

fail() {
    printf 'check_package.sh %s %s: %s\n' "$way" "$kind" "$1" >&2
    exit 1
}

# What the surroundings may have set for the tests would change what is tested here.
unset CXXFLAGS LDFLAGS CMAKE_PREFIX_PATH PKG_CONFIG_PATH LD_LIBRARY_PATH
# The same generator whatever CMAKE_GENERATOR says.
export CMAKE_GENERATOR="Ninja"

# A program from an earlier run must not pass for one of this run.
rm -rf "$work_dir"
mkdir -p "$work_dir"
cd "$work_dir"

configure() { cmake "-DCMAKE_CXX_COMPILER=$compiler" "-DBUILD_SHARED_LIBS=$shared" "$@"; }

install_chime() {
    configure -S "$source_dir" -B chime
    cmake --build chime
    cmake --install chime --prefix "$work_dir/installed"
    # Nothing that was installed may remember where.
    mv installed moved
    library_dir="$(dirname "$(find "$work_dir/moved" -name 'libchime.*' | sort | head -n 1)")"
    if [[ "$kind" == shared ]]; then
        [[ -e "$library_dir/libchime.so" ]] || fail "no libchime.so was installed"
    else
        [[ -e "$library_dir/libchime.a" ]] || fail "no libchime.a was installed"
    fi
    if grep --recursive --binary-files=without-match --files-with-matches --fixed-strings "$source_dir" moved; then
        fail "the files above name the source directory"
    fi
}

embed() {
    configure -S "$tests_dir/$1" -B consumer "${@:2}"
    cmake --build consumer
    ./consumer/consumer
}

case "$way" in
    find_package)
        install_chime
        configure -S "$tests_dir/find_package" -B consumer "-DCMAKE_PREFIX_PATH=$work_dir/moved"
        cmake --build consumer
        ./consumer/consumer
        ;;
    pkg_config)
        install_chime
        export PKG_CONFIG_PATH="$library_dir/pkgconfig"
        pkg-config --exact-version "$(sed -n 's/^#define CHIME_VERSION_[A-Z]* \([0-9]*\)$/\1/p' \
            "$source_dir/include/chime/version.hpp" | paste -sd .)" chime || fail "pkg-config tells another version"
        # Flags are words to be split.
        # shellcheck disable=SC2046
        "$compiler" -std=c++20 $(pkg-config --cflags chime) "$tests_dir/consumer.cpp" $(pkg-config --libs chime) -o consumer
        LD_LIBRARY_PATH="$library_dir" ./consumer
        ;;
    add_subdirectory)
        embed add_subdirectory "-DCHIME_SOURCE_DIR=$source_dir"
        cmake --install consumer --prefix "$work_dir/installed"
        if [[ -e installed ]]; then fail "an embedded chime installed itself"; fi
        ;;
    fetch_content)
        embed fetch_content "-DFETCHCONTENT_SOURCE_DIR_CHIME=$source_dir" -DFETCHCONTENT_FULLY_DISCONNECTED=ON
        ;;
    no_rtti)
        embed add_subdirectory "-DCHIME_SOURCE_DIR=$source_dir" "-DCMAKE_CXX_FLAGS=-fno-rtti -Wall -Wextra -Werror"
        ;;
    symbols)
        configure -S "$source_dir" -B chime
        cmake --build chime
        nm --dynamic --defined-only --extern-only --demangle chime/libchime.so >symbols
        grep --quiet ' T chime::v0::version()$' symbols || fail "the API is not offered; nm says: $(cat symbols)"
        # Inside is not for outside, and what others wrote is not ours to offer. What public templates call is in detail;
        # the members of the types behind them are not offered.
        if grep --extended-regexp 'chime::(v0::)?(base::|detail::(worker|parking|inbox|units?|unit_[a-z]+|callback|task_slot|counter|ticket_wheel)(<.*>)?::)' symbols; then
            fail "the internal symbols above are visible"
        fi
        if grep --extended-regexp --invert-match ' [TWVBDR] (vtable for |typeinfo (name )?for )?chime::v0::' symbols; then
            fail "the symbols above are visible and not in chime::v0"
        fi
        ;;
    plain)
        cmake -S "$source_dir" -B build "-DCMAKE_CXX_COMPILER=$compiler"
        cmake --build build
        grep --quiet '^CMAKE_BUILD_TYPE:STRING=Release$' build/CMakeCache.txt || fail "a plain build is not a release"
        [[ -e build/libchime.a ]] || fail "a plain build makes no libchime.a"
        for folder in tests examples bench; do
            if [[ -e "build/$folder" ]]; then fail "a plain build makes $folder"; fi
        done
        cmake --install build --prefix "$work_dir/installed"
        find installed -type f | sort
        ;;
    *)
        fail "there is no such way"
        ;;
esac
