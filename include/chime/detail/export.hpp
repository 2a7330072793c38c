// SPDX-License-Identifier: MIT
#pragma once

#if __cplusplus < 202002L
#error "chime needs C++20: compile with -std=c++20 or later"
#endif

#if defined(__GNUC__) && !defined(__cpp_exceptions)
#error "chime reports refusals as exceptions: compile without -fno-exceptions"
#endif

#include <version>

// Said here, because every header that could need them includes this one first.
#if !defined(__cpp_impl_coroutine) || !defined(__cpp_lib_coroutine) || !defined(__cpp_lib_source_location)
#error "chime needs coroutines and <source_location>, which this compiler lacks; g++ 12 and clang 19 have them"
#endif

// CHIME_API marks what the shared library offers; everything else in it is hidden.
//
// A static chime has nothing to offer to a dynamic linker: inside somebody's plug-in its symbols stay private, so that
// two plug-ins with two versions of chime do not meet.
#if defined(CHIME_STATIC)
#define CHIME_API
#else
#define CHIME_API __attribute__((visibility("default")))
#endif
