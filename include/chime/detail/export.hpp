// SPDX-License-Identifier: MIT
#pragma once

// CHIME_API marks what the shared library offers; everything else in it is hidden.
//
// A static chime has nothing to offer to a dynamic linker: inside somebody's plug-in its symbols stay private, so that
// two plug-ins with two versions of chime do not meet.
#if defined(CHIME_STATIC)
#define CHIME_API
#else
#define CHIME_API __attribute__((visibility("default")))
#endif
