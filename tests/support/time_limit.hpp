// SPDX-License-Identifier: MIT
#pragma once

namespace chime::test {

/// Called when a test has taken too long, after its threads were told: for tests whose threads the system does not know.
/// It is called inside a signal, by a program that is about to end.
extern void (*also_tells_where_it_stands)();

}  // namespace chime::test
