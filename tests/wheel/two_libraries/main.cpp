// SPDX-License-Identifier: MIT
#include "part.hpp"

#include <cstdio>

// A wheel in one shared library does not know the ids of a wheel in another, whatever these hide.

int main() {
    const chime::timer_id first = first_arm(1);
    const chime::timer_id second = second_arm(2);
    if (first_cancels(second) || second_cancels(first)) return std::puts("a foreign id names a timer"), 1;
    if (!first_cancels(first) || !second_cancels(second)) return std::puts("an id does not name its timer"), 1;
    return 0;
}
