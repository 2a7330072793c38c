// SPDX-License-Identifier: MIT
#pragma once

// Another name for the same thing.
#include <chime/timers.hpp>
