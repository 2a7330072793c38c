// SPDX-License-Identifier: MIT
// says: say what the number is: chime::runtime rt({.workers = 4})
#include <chime/runtime.hpp>

void start() {
#ifdef MISTAKE
    chime::runtime rt(4);
#else
    chime::runtime rt({.workers = 4});
#endif
}
