// SPDX-License-Identifier: MIT
#pragma once

namespace chime::test {

/// Writes down where each thread stands, and ends the program with 1: `what` has come to a halt, and `why` we think so.
/// Any thread, also inside a signal; of several that call it, the first one tells.
[[noreturn]] void tell_where_threads_stand_and_end(const char* what, const char* why) noexcept;

/// From now on `what` may take CHIME_TIME_LIMIT seconds, a number in the environment; then it is told where its threads
/// stand, and the program ends. Without that number it may take as long as it likes. A child by fork() has some seconds
/// less than what is left, so that it tells before whoever waits for it does.
void begin_limited(const char* what) noexcept;

/// It has come to its end in time.
void end_limited() noexcept;

/// Called after the threads were told: for tests whose threads the system does not know.
/// It is called inside a signal, by a program that is about to end.
extern void (*also_tells_where_it_stands)();

}  // namespace chime::test
