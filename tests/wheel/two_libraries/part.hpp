// SPDX-License-Identifier: MIT
#pragma once

#include <chime/wheel.hpp>

// Each library is compiled with names of its own for CHIME_ARM and CHIME_CANCELS.

#define CHIME_VISIBLE [[gnu::visibility("default")]]

CHIME_VISIBLE chime::timer_id first_arm(int value);
CHIME_VISIBLE bool first_cancels(chime::timer_id id);
CHIME_VISIBLE chime::timer_id second_arm(int value);
CHIME_VISIBLE bool second_cancels(chime::timer_id id);
