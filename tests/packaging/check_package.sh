#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Uses chime as a stranger would: puts it somewhere, and builds and runs a program with it.
#
# usage: check_package.sh WAY static|shared SOURCE_DIR BUILD_DIR WORK_DIR COMPILER
#
#   WAY  install           static: installs what is built in BUILD_DIR; shared: builds a release and installs that;
#                          then moves the installed tree, which the next three use
#        find_package      found by CMake
#        pkg_config        found by pkg-config, compiled by hand
#        symbols           the shared library offers the API and nothing else
#        plain             plain `cmake -B` configures a release of the library alone
#        add_subdirectory  embedded
#        fetch_content     embedded through FetchContent, without a download; all that is FetchContent's own is over when
#                          the program is compiled, so the library is left to add_subdirectory
#        plugin            embedded in a program and, once more, in what that loads while it runs
#        no_rtti           embedded, everything compiled with -fno-rtti
set -euo pipefail

way="$1" kind="$2" source_dir="$3" build_dir="$4" work_dir="$5" compiler="$6"
tests_dir="$source_dir/tests/packaging"
moved="$work_dir/moved_$kind"
work_dir="$work_dir/${way}_$kind"
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

# Sets library_dir: where the library lies in the installed tree.
find_library_dir() {
    local found
    found="$(find "$moved" -name 'libchime.*' | sort | head -n 1)"
    [[ -n "$found" ]] || fail "no library was installed"
    library_dir="$(dirname "$found")"
}

embed() {
    configure -S "$tests_dir/$1" -B consumer "${@:2}"
    cmake --build consumer
    ./consumer/consumer
}

case "$way" in
    install)
        if [[ "$kind" == shared ]]; then
            build_dir="$work_dir/chime"
            configure -S "$source_dir" -B "$build_dir"
            cmake --build "$build_dir"
        fi
        cmake --install "$build_dir" --prefix "$work_dir/installed"
        # Nothing that was installed may remember where.
        rm -rf "$moved"
        mv installed "$moved"
        find_library_dir
        if [[ "$kind" == shared ]]; then
            [[ -e "$library_dir/libchime.so" ]] || fail "no libchime.so was installed"
        else
            [[ -e "$library_dir/libchime.a" ]] || fail "no libchime.a was installed"
        fi
        if grep --recursive --binary-files=without-match --files-with-matches --fixed-strings "$source_dir" "$moved"; then
            fail "the files above name the source directory"
        fi
        ;;
    find_package)
        configure -S "$tests_dir/find_package" -B consumer "-DCMAKE_PREFIX_PATH=$moved"
        cmake --build consumer
        ./consumer/consumer
        ;;
    pkg_config)
        find_library_dir
        export PKG_CONFIG_PATH="$library_dir/pkgconfig"
        pkg-config --exact-version "$(sed -n 's/^#define CHIME_VERSION_[A-Z]* \([0-9]*\)$/\1/p' \
            "$source_dir/include/chime/version.hpp" | paste -sd .)" chime || fail "pkg-config tells another version"
        # Flags are words to be split.
        # shellcheck disable=SC2046
        "$compiler" -std=c++20 $(pkg-config --cflags chime) "$tests_dir/consumer.cpp" $(pkg-config --libs chime) -o consumer
        LD_LIBRARY_PATH="$library_dir" ./consumer
        ;;
    symbols)
        find_library_dir
        nm --dynamic --defined-only --extern-only --demangle "$library_dir/libchime.so" >symbols
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
        grep --quiet '^CMAKE_BUILD_TYPE:STRING=Release$' build/CMakeCache.txt || fail "a plain build is not a release"
        # What it would build is enough to know.
        ninja -C build -t commands >planned
        grep --quiet 'libchime\.a' planned || fail "a plain build makes no libchime.a"
        if grep --extended-regexp " $source_dir/(tests|examples|demo|bench)/" planned; then
            fail "a plain build makes what is above"
        fi
        ;;
    add_subdirectory)
        embed add_subdirectory "-DCHIME_SOURCE_DIR=$source_dir"
        cmake --install consumer --prefix "$work_dir/installed"
        if [[ -e installed ]]; then fail "an embedded chime installed itself"; fi
        ;;
    fetch_content)
        configure -S "$tests_dir/fetch_content" -B consumer \
            "-DFETCHCONTENT_SOURCE_DIR_CHIME=$source_dir" -DFETCHCONTENT_FULLY_DISCONNECTED=ON
        cmake --build consumer --target consumer_object
        ;;
    plugin)
        embed plugin "-DCHIME_SOURCE_DIR=$source_dir"
        ;;
    no_rtti)
        embed add_subdirectory "-DCHIME_SOURCE_DIR=$source_dir" "-DCMAKE_CXX_FLAGS=-fno-rtti -Wall -Wextra -Werror"
        ;;
    *)
        fail "there is no such way"
        ;;
esac
